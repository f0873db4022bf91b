import { strict as assert } from 'node:assert'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import t from 'tap'
import type { ModelCall } from '../../plugins/core/call/model-call.js'
import { meter } from './meter-reply.js'
import { repliesIn } from './truth.js'

/** All that a reading leaves behind. */
function told ({ usage }: ModelCall): object {
  return usage
}

/** What a reply tells that came whole, and what the scanner finds in it. */
function bothWays (protocol: string, bytes: Buffer, more: readonly Buffer[] = []): [whole: object, scanned: object] {
  return [told(meter(protocol, [bytes, ...more]).llm), told(meter(protocol, [bytes.subarray(0, 1), bytes.subarray(1), ...more]).llm)]
}

const documents = [...repliesIn('fixtures'), ...repliesIn('corpus')].filter(
  ({ file, bytes }) => file.endsWith('.json') && bytes.length <= 4_096
)
const kept = { id: 'chatcmpl-1', model: 'm-1', choices: [{ index: 0, message: { content: 'Hello.' }, finish_reason: 'stop' }] }
const usage = { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 }

function bytesOf (value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value))
}

t.test('a small reply that came whole tells what the scanner finds in it, whatever follows', async (t) => {
  for (const { file, protocol, bytes } of documents) {
    for (const more of [
      '', ' ', '\n{}', '{"usage":null}', '{"usage":{"prompt_tokens":null,"total_tokens":99,"input_tokens":4}}', bytes.toString('latin1'),
    ]) {
      const [found, wanted] = bothWays(protocol, bytes, more === '' ? [] : [Buffer.from(more, 'latin1')])
      t.strictSame(found, wanted, `${file} ${more.slice(0, 20)}`)
    }
  }
})

t.test('no reply is read otherwise than by the scanner, whatever it holds', async () => {
  const number = fc.oneof(
    fc.nat().map(String), fc.constantFrom('-1', '0.5', '1e3', '007', '-0', '9007199254740993', '1234567890123456', '1-2', '01')
  )
  const text = fc.oneof(fc.json().map((json) => JSON.stringify(json)), fc.constantFrom(
    '""', '"a\\"b"', '"\\u0041"', '"ä"', '"\u0001"', '"\\x"', '"STOP"', '"6"'
  ))
  const other = fc.constantFrom('null', 'true', '{}', '[]', '{"cached_tokens":3}', '[{"finish_reason":"stop"},null,1]')
  const change = fc.record({ at: fc.nat(), value: fc.oneof(number, text, other) })
  const end = fc.oneof({ weight: 20, arbitrary: fc.constant('') }, fc.constantFrom(' ', '\n', '{}', ',', 'x'))
  const cases = fc.record({ document: fc.constantFrom(...documents), changes: fc.array(change, { maxLength: 3 }), end })
  fc.assert(fc.property(cases, ({ document: { protocol, bytes }, changes, end }) => {
    const changed = Buffer.from(changes.reduce(replaced, bytes.toString('latin1')) + end, 'latin1')
    const [found, wanted] = bothWays(protocol, changed)
    assert.deepEqual(found, wanted, changed.toString())
  }), { numRuns: 2_000 })
})

interface Change {
  readonly at: number
  readonly value: string
}

/** The text with one of its values, counted from 0, replaced. */
function replaced (text: string, { at, value: other }: Change): string {
  const values = [...text.matchAll(/(?<=[:,[]\s*)(?:"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null)(?=\s*[,}\]])/gs)]
  const value = values[at % Math.max(1, values.length)]
  if (value === undefined) return text
  return text.slice(0, value.index) + Buffer.from(other).toString('latin1') + text.slice(value.index + value[0].length)
}

t.test('two documents in one piece, and what is no JSON, are left to the scanner', async (t) => {
  const two = Buffer.concat([
    bytesOf({ ...kept, usage }), Buffer.from('\n'), bytesOf({ usage: { prompt_tokens: 1, completion_tokens: 1 } }),
  ])
  const rows = [
    '{"usage":{"prompt_tokens":5,"x":--1}}', '{"usage":{"prompt_tokens":5,"x":01,"x":2}}', '{"usage":{"prompt_tokens":5}} "\\"', '{',
  ]
  for (const bytes of [two, ...rows.map((row) => Buffer.from(row))]) {
    const [found, wanted] = bothWays('chat_completions', bytes)
    t.strictSame(found, wanted, bytes.toString())
  }
})

t.test('a piece of a document that looks like one of its own is none', async (t) => {
  const inner = '{"usage":{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":1}}}'
  const pieces = ['{"x":', inner, ',"usage":{"prompt_tokens":1,"completion_tokens":2}}']
  const { llm } = meter('chat_completions', pieces.map((text) => Buffer.from(text)))
  t.match(llm.usage, { tokens: { input: 1, cache_read: 0, output: 2 }, missing: null })
})

t.test('the last of two keys of one name counts', async (t) => {
  for (const [text, output] of [
    ['{"usage":{"completion_tokens":1},"usage":{"completion_tokens":2}}', 2], ['{"usage":{"completion_tokens":1},"usage":null}', undefined],
  ] as const) {
    for (const told of bothWays('chat_completions', Buffer.from(text))) {
      t.equal(Reflect.get(Object(Reflect.get(told, 'tokens')), 'output'), output)
    }
  }
})

t.test('a name that is told holds on to nothing else of its reply', async (t) => {
  setFlagsFromString('--expose-gc')
  const collect: () => void = runInNewContext('gc')
  const reply = (at: number): Buffer => bytesOf({
    ...kept, id: `chatcmpl-${at}-of-thousands`, choices: [{ message: { content: 'x'.repeat(3_500) } }], usage,
  })
  const ids: unknown[] = []
  const read = (from: number, to: number): void => {
    for (let at = from; at < to; at++) ids.push(meter('chat_completions', [reply(at)]).llm.usage.responseId)
  }
  read(0, 500)
  collect()
  const before = process.memoryUsage().heapUsed
  read(500, 4_500)
  collect()
  const grownBytes = process.memoryUsage().heapUsed - before
  t.equal(new Set(ids).size, 4_500)
  t.ok(grownBytes < 4_000 * 1_000, `${grownBytes} bytes for 4,000 names`)
})
