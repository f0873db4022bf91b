/** What the code cites is there for whoever reads it. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'

const root = new URL('../', import.meta.url).pathname

const sources = ['plugins', 'bin'].flatMap((folder) => {
  const files = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
  return files.filter((file) => file.endsWith('.ts') || file.endsWith('.js')).map((file) => join(folder, file))
})

t.test('comments cite papers of this repository that are there, or public sources', async (t) => {
  for (const file of sources) {
    const text = readFileSync(join(root, file), 'utf8')
    t.notMatch(text, /\bDESIGN\b|\bfacts\//, file)
    const cited = [...text.matchAll(/\bdocs\/[\w-]+\.md\b/g)].map(([page]) => page)
    t.same(cited.filter((page) => !existsSync(join(root, page))), [], file)
  }
})
