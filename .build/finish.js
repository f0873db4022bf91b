/** Finishes what the compiler wrote to `dist`: code without comments, declarations of what is public, a command that can be run. */
import { chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { publicDeclarations } from './declarations.js'
import { withoutComments } from './without-comments.js'

const manifest = JSON.parse(readFileSync('package.json', 'utf8'))
const entries = Object.values(manifest.exports).filter((target) => target.types).map(({ types }) => join(types))
const declarations = publicDeclarations(entries)

for (const name of readdirSync('dist', { recursive: true })) {
  const path = join('dist', name)
  if (path.endsWith('.js')) writeFileSync(path, withoutComments(readFileSync(path, 'utf8')))
  if (path.endsWith('.d.ts')) rmSync(path)
}
for (const [path, text] of declarations) writeFileSync(path, text)
chmodSync(Object.values(manifest.bin)[0], 0o755)
