/**
 * Finishes `dist`: few files of code without comments, and with them the script of the console; declarations of what is public; an
 * executable command.
 * Only blanks and comments go: names stay, and each statement keeps a line of its own, so that stack traces can be read.
 */
import { chmodSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parseAst } from 'rollup/parseAst'
import { minify } from 'terser'
import { bundled } from './bundle.js'
import { publicDeclarations } from './declarations.js'

/** Line ends for semicolons, and quotes as they are. */
const format = { semicolons: false, ecma: 2020, quote_style: 3 }

async function withoutComments ([path, text]) {
  const { code } = await minify(text, { module: true, compress: false, mangle: false, format })
  return [path, withLineEnds(code)]
}

/** Texts over several lines as they were: terser writes each line end as two characters, and a script of a store as one line. */
function withLineEnds (code) {
  const lastFirst = textsIn(parseAst(code)).sort((a, b) => b.start - a.start)
  return lastFirst.reduce((all, { start, end }) =>
    all.slice(0, start) + all.slice(start, end).replaceAll(/(?<!\\)((?:\\\\)*)\\n/g, '$1\n') + all.slice(end), code)
}

/** The texts of all templates. */
function textsIn (node) {
  if (Object(node) !== node) return []
  return node.type === 'TemplateElement' ? [node] : Object.values(node).flatMap(textsIn)
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
