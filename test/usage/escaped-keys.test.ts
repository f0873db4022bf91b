/** Keys may be written with escapes: to a JSON parser they are the same keys, so their tokens count the same. */
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import t from 'tap'
import { bytesOf, cutAt, eventsOf, meter } from './meter-reply.js'
import { differenceOf, type Truth } from './truth.js'

const folder = new URL('../fixtures/usage/', import.meta.url)
const expected: Record<string, Truth> = JSON.parse(readFileSync(new URL('expected.json', folder), 'utf8'))

/** Every letter of every key as an escape; texts stay as they are. */
function escapeKeys (json: string): string {
  return json.replace(/"((?:[^"\\]|\\.)*)"(\s*:)?/g, (whole, text: string, end: string | undefined) => {
    if (end === undefined) return whole
    const letters = text.replace(/[a-z_]/gi, (letter) => `\\u00${letter.charCodeAt(0).toString(16)}`)
    return `"${letters}"${end}`
  })
}

function escaped (file: string): Buffer {
  const text = readFileSync(new URL(file, folder), 'utf8')
  return Buffer.from(file.endsWith('.sse') ? text.replace(/\{.*/g, escapeKeys) : escapeKeys(text))
}

for (const [file, truth] of Object.entries(expected)) {
  t.test(file, async (t) => {
    const bytes = escaped(file)
    for (const pieces of [[bytes], eventsOf(bytes), bytesOf(bytes)]) {
      t.strictSame(differenceOf(meter(String(file.split('/')[0]), pieces), bytes, truth), null, `${pieces.length} pieces`)
    }
  })
}

t.test('the event to take out is found under escaped keys, and texts that look like it stay', async (t) => {
  const extra = 'data: {"choices":[],"u\\u0073age":{"prompt_to\\u006bens":3,"completion_tokens":4}}\n\n'
  const text = ['\\u006bens\\"', '\\\\u006bens', 'caf\\u00e9', '\\n\\u2028']
    .map((content) => `data: {"choices":[{"index":0,"delta":{"content":"${content}"}}]}\n\n`)
    .join('')
  fc.assert(fc.property(fc.array(fc.nat({ max: text.length + extra.length }), { maxLength: 5 }), (cuts) => {
    const { llm, out } = meter('chat_completions', cutAt(Buffer.from(text + extra), cuts), { 'content-type': 'text/event-stream' }, true)
    return out.toString() === text && llm.usage.tokens?.input === 3 && llm.usage.tokens.output === 4
  }), { numRuns: 500 })
  t.pass()
})
