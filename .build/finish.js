/**
 * Finishes what the compiler wrote to `dist`: few files of code without comments, declarations of what is public, an executable command.
 */
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { bundled } from './bundle.js'
import { publicDeclarations } from './declarations.js'
import { withoutComments } from './without-comments.js'

const manifest = JSON.parse(readFileSync('package.json', 'utf8'))
const entries = Object.values(manifest.exports).filter((target) => target.types).map(({ types }) => join(types))
const declarations = publicDeclarations(entries)

const code = (await bundled(resolve('dist'))).map(([path, text]) => [path, withoutComments(text)])

rmSync('dist', { recursive: true })
for (const [path, text] of [...declarations, ...code]) {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}
chmodSync(Object.values(manifest.bin)[0], 0o755)
