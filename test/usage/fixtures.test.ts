import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import { firstWrongCoding, firstWrongSplit, repliesIn } from './truth.js'

const folder = new URL('../fixtures/usage/', import.meta.url)
const fixtures = repliesIn('fixtures')

for (const { file, protocol, bytes, truth } of fixtures) {
  t.test(file, async (t) => {
    t.strictSame(firstWrongSplit(protocol, bytes, truth), null, 'every split')
    t.strictSame(await firstWrongCoding(protocol, bytes, truth), null, 'every content coding')
  })
}

t.test('every fixture has its truth', async (t) => {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.includes('/'))
  t.strictSame(files.sort(), fixtures.map(({ file }) => file).sort())
})

t.test('the replies of the scripted upstream come to what it says it reported', async (t) => {
  const replies = new URL('../fixtures/replies/', import.meta.url)
  const reported: Record<string, { protocol: string, leaves: Record<string, number> }> = JSON.parse(readFileSync(
    new URL('usage.json', replies), 'utf8'
  ))
  for (const [file, { protocol, leaves }] of Object.entries(reported)) {
    t.strictSame(firstWrongSplit(protocol, readFileSync(new URL(file, replies)), { leaves }), null, file)
  }
})
