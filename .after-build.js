/** Finishes what the compiler wrote: the command can be run, and declarations that no entry leads to are not shipped. */
import { chmodSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'

const manifest = JSON.parse(readFileSync('package.json', 'utf8'))

/** The declarations that `entry` leads to, itself among them. */
function reachable (entry, found) {
  if (found.has(entry)) return
  found.add(entry)
  for (const [, to] of readFileSync(entry, 'utf8').matchAll(/\b(?:from|import)\s*\(?\s*['"](\.[^'"]+)\.js['"]/g)) {
    reachable(`${join(dirname(entry), to)}.d.ts`, found)
  }
}

const found = new Set()
for (const { types } of Object.values(manifest.exports).filter((target) => target.types)) reachable(join(types), found)
for (const name of readdirSync('dist', { recursive: true })) {
  const path = join('dist', name)
  if (path.endsWith('.d.ts') && !found.has(path)) rmSync(path)
}
chmodSync(Object.values(manifest.bin)[0], 0o755)
