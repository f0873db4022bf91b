/** What the pages show and name beside their tables is right, those of the examples and the changelog included. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { helpOf, overview } from '../bin/help.js'
import { parseConfig } from '../plugins/standalone/config.js'
import { pages } from './scripts/tables.js'

const root = new URL('../', import.meta.url).pathname
const examples = readdirSync(`${root}examples`).map((name) => `examples/${name}/README.md`)
const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const papers = [...pages, ...examples, 'CHANGELOG.md'].map((path) => ({ path, text: read(path) }))

/** As a heading is linked to. */
function anchorsOf (text: string): string[] {
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => heading.toLowerCase().replaceAll(/[^\w -]/g, '').replaceAll(' ', '-'))
}

t.test('every file and heading that a page names is there', async (t) => {
  for (const { path, text } of papers) {
    for (const [, link = ''] of text.matchAll(/\]\(((?!http)[^)]+)\)/g)) {
      const [file = '', anchor] = link.split('#')
      const target = file === '' ? path : join(dirname(path), file)
      t.ok(existsSync(join(root, target)), `${path}: ${link}`)
      if (anchor !== undefined) t.ok(anchorsOf(read(target)).includes(anchor), `${path}: ${link}`)
    }
  }
})

/** A configuration of which a page shows a part: what the part leaves out. */
function whole (part: Record<string, unknown>): string {
  const groups = Object.entries<object>(Object(part['groups'] ?? { chat: {} }))
  return JSON.stringify({
    upstreams: { demo: { simulate: true } },
    state: { engine: 'memory' },
    prices: { models: { '*': { input: 1 } } },
    ...part,
    groups: Object.fromEntries(groups.map(([name, group]) => [name, { protocols: ['messages'], ...group }])),
  })
}

t.test('every part of a configuration that a page shows is valid', async (t) => {
  const parts = papers.flatMap(({ path, text }) => [...text.matchAll(/```yaml\n([^]*?)```/g)].map(([, yaml = '']) => ({ path, yaml })))
    .filter(({ yaml }) => !/^(?:#|scrape_configs)/.test(yaml))
  t.ok(parts.length > 5, `${parts.length} parts`)
  for (const { path, yaml } of parts) {
    const env = Object.fromEntries([...yaml.matchAll(/\$\{(\w+)\}/g)].map(([, name = '']) => {
      return [name, name.endsWith('URL') ? 'postgres://host/database' : 'x']
    }))
    t.doesNotThrow(() => parseConfig(whole(parse(yaml)), env), path)
  }
})

t.test('every command that a page shows has the options that it is shown with', async (t) => {
  let shown = 0
  for (const { path, text } of papers) {
    for (const [, words = ''] of text.matchAll(/(?:^|[`(]|npx )llm-gateway ((?!help )(?:[a-z]+ ?){1,2}[^`#\n)]*)/gm)) {
      const [name = '', sub = ''] = words.split(' ')
      const help = helpOf([name, sub])
      t.not(help, overview, `${path}: ${words}`)
      for (const [option] of words.matchAll(/--[a-z-]+/g)) t.match(help, option, `${path}: ${words}`)
      shown += 1
    }
  }
  t.ok(shown > 30, `${shown} commands`)
})
