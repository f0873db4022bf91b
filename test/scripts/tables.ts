/**
 * The tables of the papers that have their source in the code. `UPDATE_TABLES=1 npx tap test/papers.test.ts` writes them;
 * without it that test fails where a page differs.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { errorTable } from '../../plugins/core/errors/table.js'
import { catalogue, prefix } from '../../plugins/metrics/catalogue.js'
import { endpoints, modelLists, protocolNames } from '../../plugins/protocols/index.js'
import type { Endpoint } from '../../plugins/protocols/index.js'

const root = new URL('../../', import.meta.url)

/** Every page, from the root of the repository. */
export const pages: readonly string[] = [
  'README.md', ...readdirSync(new URL('docs/', root)).filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`),
]

function table (head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`)
  return lines.join('\n')
}

function addressOf ({ method, family, tail, action }: Endpoint): string {
  const path = `/${family.prefix}/${tail.join('/').replace(/:(\w+)/g, '{$1}')}${action === null ? '' : `:${action}`}`
  return `\`${method} ${path}\``
}

function protocols (): string {
  const lists = Object.values(modelLists).flatMap(({ list, retrieve }) => [...list, ...retrieve])
  return table(['Endpoint', 'Id', 'Conventions', 'Group needs', 'Body checked', 'Tokens counted'], [...endpoints, ...lists].map((
    endpoint
  ) => [
    addressOf(endpoint),
    `\`${endpoint.id}\``,
    endpoint.family.name,
    endpoint.allowedBy.map((name) => `\`${name}\``).join(' or '),
    endpoint.schema === null ? '–' : `[schema](../schemas/${endpoint.schema}.request.json)`,
    endpoint.metered === 'no' ? '–' : endpoint.metered === 'yes' ? 'yes' : 'where the reply tells them',
  ]))
}

function metrics (): string {
  return table(['Name', 'Type', 'Labels', 'Unit', 'Meaning'], Object.entries(catalogue).map(([name, { type, labels, unit, help }]) => [
    `\`${prefix}${name}\``, type, labels.join(', '), unit, help,
  ]))
}

function errors (): string {
  return table(
    ['Code', 'Status', 'Message'], Object.entries(errorTable).map(([code, { status, message }]) => [`\`${code}\``, String(status), message])
  )
}

interface GeneratedTable {
  readonly page: string
  readonly make: () => string
}

export const generated: Readonly<Record<string, GeneratedTable>> = {
  protocols: { page: 'docs/clients.md', make: protocols },
  metrics: { page: 'docs/metrics.md', make: metrics },
  errors: { page: 'docs/errors.md', make: errors },
}

/** What stands between the markers of a generated part; null where there are none. */
export function partOf (page: string, name: string): string | null {
  return new RegExp(`<!-- ${name}:start -->\\n([\\s\\S]*?)\\n?<!-- ${name}:end -->`).exec(page)?.[1] ?? null
}

const schemaFile = new URL('schemas/gateway.schema.json', root)

/** The schema of the configuration file, with the names of the protocols as the table has them. */
export function withProtocols (schema: string): string {
  const names = protocolNames.map((name) => JSON.stringify(name)).join(', ')
  return schema.replace(/("protocol": \{\s*"enum": \[)[^\]]*/, (_, start: string) => start + names)
}

export function writeTables (): void {
  writeFileSync(schemaFile, withProtocols(readFileSync(schemaFile, 'utf8')))
  for (const [name, { page, make }] of Object.entries(generated)) {
    const url = new URL(page, root)
    const between = new RegExp(`(<!-- ${name}:start -->\\n)[\\s\\S]*?(<!-- ${name}:end -->)`)
    writeFileSync(url, readFileSync(url, 'utf8').replace(between, (_, start: string, end: string) => `${start}${make()}\n${end}`))
  }
}
