import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import { firstWrongCoding, firstWrongSplit, type Truth } from './truth.js'

const folder = new URL('../fixtures/usage/', import.meta.url)
const expected: Record<string, Truth> = JSON.parse(readFileSync(new URL('expected.json', folder), 'utf8'))

for (const [file, truth] of Object.entries(expected)) {
  t.test(file, async (t) => {
    const bytes = readFileSync(new URL(file, folder))
    const protocol = String(file.split('/')[0])
    t.strictSame(firstWrongSplit(protocol, bytes, truth), null, 'every split')
    t.strictSame(await firstWrongCoding(protocol, bytes, truth), null, 'every content coding')
  })
}

t.test('every fixture has its truth', async (t) => {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.includes('/'))
  t.strictSame(files.sort(), Object.keys(expected).sort())
})

t.test('the replies of the scripted upstream come to what it says it reported', async (t) => {
  const replies = new URL('../fixtures/replies/', import.meta.url)
  const reported: Record<string, { protocol: string, leaves: Record<string, number> }> = JSON.parse(readFileSync(new URL('usage.json', replies), 'utf8'))
  for (const [file, { protocol, leaves }] of Object.entries(reported)) {
    t.strictSame(firstWrongSplit(protocol, readFileSync(new URL(file, replies)), { leaves }), null, file)
  }
})
