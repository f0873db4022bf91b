/** Recorded provider replies that are kept beside the project, not in it: without them there is nothing to do here. */
import { existsSync, readFileSync } from 'node:fs'
import t from 'tap'
import { firstWrongCoding, firstWrongSplit, type Truth } from './truth.js'

const corpus = new URL('../../../shared/corpus/', import.meta.url)

if (existsSync(corpus)) {
  const expected: Record<string, Truth['leaves']> = JSON.parse(readFileSync(new URL('expected.json', corpus), 'utf8'))
  for (const [file, leaves] of Object.entries(expected)) {
    t.test(file, async (t) => {
      const bytes = readFileSync(new URL(file, corpus))
      const protocol = String(file.split('/')[0])
      const truth: Truth = leaves === null ? { leaves, missing: 'no_usage' } : { leaves }
      t.strictSame(firstWrongSplit(protocol, bytes, truth), null, 'every split')
      t.strictSame(await firstWrongCoding(protocol, bytes, truth), null, 'every content coding')
    })
  }
} else {
  t.test('recorded replies', { skip: '../shared/corpus is not there' }, async () => {})
}
