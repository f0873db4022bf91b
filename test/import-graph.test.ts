/** Who may import whom, types included, as docs/architecture.md says. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'

const root = new URL('../', import.meta.url).pathname

function sourcesIn (folder: string): string[] {
  const files = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
  return files.filter((file) => file.endsWith('.ts')).map((file) => join(folder, file))
}

const sources = [...sourcesIn('plugins'), ...sourcesIn('bin')]
const texts = new Map(sources.map((file) => [file, readFileSync(join(root, file), 'utf8')]))

function importsOf (file: string): string[] {
  const found = String(texts.get(file)).matchAll(/(?:\bfrom|\bimport\(?) ?'(\.[^']*)\.js'/g)
  return [...found].map(([, path]) => `${join(dirname(file), String(path))}.ts`)
}

const graph = new Map(sources.map((file) => [file, importsOf(file)]))

/** The folder of `plugins/` that a file belongs to, `index` for what registers them all, `bin` for the command line. */
function partOf (file: string): string {
  if (file.startsWith('bin/')) return 'bin'
  return file.split('/').length === 2 ? 'index' : String(file.split('/')[1])
}

function isAllowed (from: string, to: string): boolean {
  if (from === to || from === 'bin') return true
  if (from === 'protocols') return false
  if (from === 'core') return to === 'protocols'
  if (to === 'core' || to === 'protocols') return true
  if (from === 'index') return to !== 'standalone' && to !== 'bin'
  return from === 'standalone' && to !== 'bin'
}

t.test('imports run one way: bin, standalone, index, plugins, core, protocols; and no plugin imports another', async (t) => {
  t.ok([...graph.values()].flat().length > 500, 'imports are found')
  const wrong = [...graph].flatMap(([file, targets]) => {
    return targets.filter((target) => !isAllowed(partOf(file), partOf(target))).map((target) => `${file} -> ${target}`)
  })
  t.same(wrong, [])
  t.same(
    [...graph].flatMap(([file, targets]) => targets.filter((target) => !graph.has(target)).map((target) => `${file} -> ${target}`)), []
  )
})

t.test('no files import each other in a circle', async (t) => {
  const done = new Set<string>()
  const circles: string[] = []
  const visit = (file: string, way: readonly string[]): void => {
    if (way.includes(file)) circles.push([...way.slice(way.indexOf(file)), file].join(' -> '))
    if (way.includes(file) || done.has(file)) return
    for (const target of graph.get(file) ?? []) visit(target, [...way, file])
    done.add(file)
  }
  for (const file of sources) visit(file, [])
  t.same(circles, [])
})

t.test('beside the bundle stands no loose file', async (t) => {
  t.same(sources.filter((file) => /^plugins\/[^/]+$/.test(file)), ['plugins/index.ts'])
})

t.test('providers are named by the protocols, the conformance kit and the simulated upstream alone', async (t) => {
  const named = /openai|anthropic|claude|gemini|\bgpt-|vertex/i
  const apart = /^(?:plugins\/protocols\/|bin\/conformance\/|plugins\/standalone\/simulator\.ts)/
  const code = (text: string): string => text.replace(/\/\*[^]*?\*\/|(?<=^|\s)\/\/.*$/gm, '')
  t.same(sources.filter((file) => !apart.test(file) && named.test(code(String(texts.get(file))))), [])
})

t.test('files are short enough to be read at once', async (t) => {
  t.same([...texts].filter(([, text]) => text.split('\n').length > 251).map(([file]) => file), [])
})
