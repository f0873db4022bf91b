/** What an installation brings along: the package as it is packed, from its lock file, without a script that has to run. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Report } from './processes.js'

const root = new URL('../../', import.meta.url).pathname

/** Below these stand known faults that reach a gateway. */
const floors: Readonly<Record<string, string>> = {
  fastify: '5.12.2',
  '@fastify/reply-from': '12.6.4',
  '@fastify/http-proxy': '11.4.4',
  undici: '7.29.1',
  'find-my-way': '9.9.0',
  'fast-uri': '3.1.7',
}

interface Locked {
  readonly version?: string
  readonly dev?: boolean
  readonly hasInstallScript?: boolean
}

export async function supplyChain ({ maxDirect }: { readonly maxDirect: number }): Promise<Report> {
  const { packages }: { packages: Record<string, Locked> } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
  const { dependencies }: { dependencies: Record<string, string> } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const direct = Object.keys(dependencies)
  const violations: string[] = []
  for (const [path, { version = '', dev = false, hasInstallScript = false }] of Object.entries(packages)) {
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
    const floor = floors[name]
    if (floor !== undefined && !dev && older(version, floor)) violations.push(`${path} is ${version}, and must not be older than ${floor}`)
    if (hasInstallScript && !dev) violations.push(`${path} has an install script`)
  }
  if (direct.length > maxDirect) violations.push(`${direct.length} direct dependencies, ${maxDirect} are allowed`)
  // In the order of npm's own tree: fails where one is missing or of another version.
  execFileSync('npm', ['ls', '--omit=dev', '--all'], { cwd: root, stdio: 'ignore' })
  return { violations, slow: [], direct: direct.length, locked: Object.keys(packages).length }
}

function older (version: string, floor: string): boolean {
  const [parts, least] = [version, floor].map((text) => text.split('.').map(Number))
  const differs = least?.findIndex((part, i) => part !== parts?.[i]) ?? -1
  return differs >= 0 && Number(parts?.[differs]) < Number(least?.[differs])
}
