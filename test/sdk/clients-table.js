/**
 * Writes the table of clients between the markers of docs/clients.md, from what the suite found (`results.json`).
 *
 *     node test/sdk/clients-table.js            writes
 *     node test/sdk/clients-table.js --check    exit code 1 where the page differs
 *     node test/sdk/clients-table.js --print    prints the table alone
 */
import { readFileSync, writeFileSync } from 'node:fs'

const start = '<!-- clients:start -->'
const end = '<!-- clients:end -->'
const page = new URL('../../docs/clients.md', import.meta.url)

const { bases, situations, clients } = JSON.parse(readFileSync(new URL('results.json', import.meta.url), 'utf8'))

function row (name) {
  const of = clients.filter((client) => client.name === name)
  const [{ version, documented, setting }] = of
  const protocols = of.map(({ protocol }) => `\`${protocol}\``).join(', ')
  const checked = of.flatMap(({ failed, skipped }) => [
    ...failed.map((title) => `fails: ${title}`), ...skipped.map((title) => `not: ${title}`),
  ])
  const notes = checked.length === 0 ? 'all' : [...new Set(checked)].join(', ')
  return `| ${name} | ${version} | ${protocols} | \`http://localhost:8080${documented}\` | ${setting} | ${notes} |`
}

/** In lines of at most 140 characters, as the pages have them. */
function wrapped (text) {
  return text.replaceAll(/(.{1,140})(?: |$)/g, '$1\n').trimEnd()
}

function table () {
  const names = [...new Set(clients.map(({ name }) => name))]
  return [
    '| Client | Version | Protocols | Base address | Variable or option | Situations |',
    '|---|---|---|---|---|---|',
    ...names.map(row),
    '',
    wrapped(`Every client was run with ${bases.length} endings of the base address ` +
      `(${bases.map((base) => base === '' ? 'none' : `\`${base}\``).join(', ')}) in ${situations.length} situations: ` +
      `${situations.join(', ')}.`),
  ].join('\n')
}

function filled (text) {
  const [from, to] = [text.indexOf(start), text.indexOf(end)]
  if (from < 0 || to < from) throw new Error(`docs/clients.md has no ${start} followed by ${end}`)
  return `${text.slice(0, from + start.length)}\n${table()}\n${text.slice(to)}`
}

if (process.argv.includes('--print')) {
  console.log(table())
} else {
  const old = readFileSync(page, 'utf8')
  const text = filled(old)
  if (!process.argv.includes('--check')) writeFileSync(page, text)
  else if (text !== old) {
    console.error('The table of clients in docs/clients.md is not what the suite found: node test/sdk/clients-table.js')
    process.exitCode = 1
  }
}
