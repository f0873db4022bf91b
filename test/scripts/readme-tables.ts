/**
 * The tables of the README that have their source in the code. `UPDATE_README=1 npx tap test/readme.test.ts` writes them;
 * without it that test fails where the README differs.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { errorTable } from '../../plugins/core/errors/table.js'
import { catalogue, prefix } from '../../plugins/metrics/catalogue.js'
import { endpoints, modelLists } from '../../plugins/protocols/index.js'
import type { Endpoint } from '../../plugins/protocols/index.js'

export const readmeUrl = new URL('../../README.md', import.meta.url)

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
  return table(['Endpoint', 'Id', 'Conventions', 'Group needs', 'Body checked', 'Tokens counted'], [...endpoints, ...lists].map((endpoint) => [
    addressOf(endpoint),
    `\`${endpoint.id}\``,
    endpoint.family.name,
    endpoint.allowedBy.map((name) => `\`${name}\``).join(' or '),
    endpoint.schema === null ? '–' : `[schema](schemas/${endpoint.schema}.request.json)`,
    endpoint.metered === 'no' ? '–' : endpoint.metered === 'yes' ? 'yes' : 'where the reply tells them',
  ]))
}

function metrics (): string {
  return table(['Name', 'Type', 'Labels', 'Unit', 'Meaning'], Object.entries(catalogue).map(([name, { type, labels, unit, help }]) => [
    `\`${prefix}${name}\``, type, labels.join(', '), unit, help,
  ]))
}

function errors (): string {
  return table(['Code', 'Status', 'Message'], Object.entries(errorTable).map(([code, { status, message }]) => [`\`${code}\``, String(status), message]))
}

export const generated: Readonly<Record<string, () => string>> = { protocols, metrics, errors }

/** What stands between the markers of a generated part; null where there are none. */
export function partOf (readme: string, name: string): string | null {
  return new RegExp(`<!-- ${name}:start -->\\n([\\s\\S]*?)\\n?<!-- ${name}:end -->`).exec(readme)?.[1] ?? null
}

export function writeReadme (): void {
  let readme = readFileSync(readmeUrl, 'utf8')
  for (const [name, make] of Object.entries(generated)) {
    readme = readme.replace(new RegExp(`(<!-- ${name}:start -->\\n)[\\s\\S]*?(<!-- ${name}:end -->)`), (_, start: string, end: string) => `${start}${make()}\n${end}`)
  }
  writeFileSync(readmeUrl, readme)
}
