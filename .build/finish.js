/**
 * Finishes `dist`: few files of code without comments, and with them the script of the console; declarations of what is public; an
 * executable command.
 * Only blanks and comments go: names stay, and each statement keeps a line of its own, so that stack traces can be read.
 */
import { chmodSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { minify } from 'terser'
import { bundled } from './bundle.js'
import { publicDeclarations } from './declarations.js'

/** Line ends for semicolons, and quotes as they are. */
const format = { semicolons: false, ecma: 2020, quote_style: 3 }

async function withoutComments ([path, text]) {
  const { code } = await minify(text, { module: true, compress: false, mangle: false, format })
  return [path, code]
}

const manifest = JSON.parse(readFileSync('package.json', 'utf8'))
const entries = Object.values(manifest.exports).filter((target) => target.types).map(({ types }) => join(types))
const declarations = await publicDeclarations(entries)
const clientFolder = 'plugins/console/client'
const client = readdirSync(clientFolder).map((name) => join(clientFolder, name))
  .map((path) => [resolve('dist', path), readFileSync(path, 'utf8')])
const code = await Promise.all([...await bundled(resolve('dist')), ...client].map(withoutComments))

rmSync('dist', { recursive: true })
for (const [path, text] of [...declarations, ...code]) {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}
chmodSync(Object.values(manifest.bin)[0], 0o755)
