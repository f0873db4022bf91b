/**
 * Finishes `dist`: few files of code without comments, and with them the script of the console; declarations of what is public; an
 * executable command.
 * Only blanks, comments and each `const` after another go: names stay, and each statement and declaration keeps a line of its own, so that
 * stack traces can be read.
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
  return [path, withEdits(code)]
}

/** What terser has no option for. */
function withEdits (code) {
  const lastFirst = editsOf(parseAst(code)).sort((a, b) => b.start - a.start)
  return lastFirst.reduce((all, { start, end, edited }) => all.slice(0, start) + edited(all.slice(start, end)) + all.slice(end), code)
}

/** As it was: terser writes a line end in a text as two characters, and so a script of a store as one line. */
const withLineEnds = (text) => text.replaceAll(/(?<!\\)((?:\\\\)*)\\n/g, '$1\n')

/** The texts of all templates, and what stands between two declarations. */
function editsOf (node) {
  if (Object(node) !== node) return []
  const { type, start, end } = node
  if (type === 'TemplateElement') return [{ start, end, edited: withLineEnds }]
  return [...Array.isArray(node) ? betweenDeclarations(node) : [], ...Object.values(node).flatMap(editsOf)]
}

/** Of declarations in a row the first alone has its `const`: 8 kB less. */
function betweenDeclarations (statements) {
  return statements.flatMap((next, i) => {
    const { type, kind, end: start } = statements[i - 1] ?? {}
    if (type !== 'VariableDeclaration' || next.type !== type || next.kind !== kind) return []
    return [{ start, end: next.declarations[0].start, edited: () => ',\n' }]
  })
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
