import { inspect } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import t from 'tap'
import { endpoints } from '../../plugins/protocols/index.js'
import type { ModelCall } from '../../plugins/core/model-call.js'
import { planOf, type Plan } from '../../plugins/usage/plan.js'
import { ShapeMemory } from '../../plugins/usage/shape-memory.js'
import { meter } from './meter-reply.js'
import { repliesIn } from './truth.js'

function planFor (protocol: string): Plan {
  const usage = endpoints.find((known) => known.id === protocol || known.protocol === protocol)?.usage
  if (usage === undefined || usage === null) throw new Error(`${protocol} is not metered`)
  return planOf(usage)
}

/** All that a reading leaves behind. */
function told ({ usage, usageMissing, usageInconsistent, usagePartial, modalities, responseModel, responseId, finishReason, replyFailed }: ModelCall): object {
  return { usage, usageMissing, usageInconsistent, usagePartial, modalities, responseModel, responseId, finishReason, replyFailed }
}

/** What a reply tells with the shapes that were learnt before, and what the scanner alone finds in it. */
function bothWays (protocol: string, pieces: readonly Buffer[], shapes: ShapeMemory): [byShape: object, byScanner: object] {
  return [told(meter(protocol, pieces, {}, false, shapes).llm), told(meter(protocol, pieces).llm)]
}

const documents = [...repliesIn('fixtures'), ...repliesIn('corpus')].filter(({ file, bytes }) => file.endsWith('.json') && bytes.length <= 4_096)
const kept = { id: 'chatcmpl-1', model: 'm-1', choices: [{ index: 0, message: { content: 'Hello.' }, finish_reason: 'stop' }] }
const usage = { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12, prompt_tokens_details: { cached_tokens: 2, audio_tokens: 1 } }

function bytesOf (value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value))
}

/** A memory that has met a reply. */
function after (protocol: string, reply: Buffer): ShapeMemory {
  const shapes = new ShapeMemory()
  meter(protocol, [reply], {}, false, shapes)
  return shapes
}

t.test('a reply that comes again is read by its shape, to the same result', async (t) => {
  let byShape = 0
  for (const { file, protocol, bytes } of documents) {
    const shapes = after(protocol, bytes)
    if (shapes.read(planFor(protocol), bytes) !== null) byShape += 1
    const [found, wanted] = bothWays(protocol, [bytes], shapes)
    t.strictSame(found, wanted, file)
  }
  t.ok(byShape > 15, `${byShape} of ${documents.length} have a shape`)
})

t.test('other values fit the same shape', async (t) => {
  const shapes = after('chat_completions', bytesOf({ ...kept, usage }))
  const text = 'A longer one, with "quotes", a \\ and ümläut 😀\n'
  const next = bytesOf({
    id: 'chatcmpl-another',
    model: 'm-2',
    choices: [{ index: 3, message: { content: text }, finish_reason: 'length' }],
    usage: { prompt_tokens: 50, completion_tokens: 0, total_tokens: 50, prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 } },
  })
  t.not(shapes.read(planFor('chat_completions'), next), null)
  const [found, wanted] = bothWays('chat_completions', [next], shapes)
  t.strictSame(found, wanted)
  t.match(found, { responseModel: 'm-2', responseId: 'chatcmpl-another', finishReason: 'length', usage: { input: 50, output: 0 }, modalities: null })
})

t.test('no reply is read wrongly by a shape, whatever it holds', async (t) => {
  const number = fc.oneof(fc.nat().map(String), fc.constantFrom('-1', '0.5', '1e3', '007', '-0', '9007199254740993', '1234567890123456', '1-2', '01'))
  const text = fc.oneof(fc.json().map((json) => JSON.stringify(json)), fc.constantFrom('""', '"a\\"b"', '"\\u0041"', '"ä"', '"\u0001"', '"\\x"', '"#3"', '"STOP"', '"6"'))
  const other = fc.constantFrom('null', 'true', '{}', '[]', '{"cached_tokens":3}')
  const change = fc.record({ at: fc.nat(), number, text, other: rarely(other) })
  const flip = rarely(fc.record({ at: fc.nat(), byte: fc.nat(255) }))
  const end = rarely(fc.constantFrom(' ', '\n', '{}', ',', 'x'))
  const cases = fc.record({ document: fc.constantFrom(...documents), changes: fc.array(change, { maxLength: 3 }), flip, end })
  let fits = 0
  fc.assert(fc.property(cases, ({ document: { protocol, bytes }, changes, flip, end }) => {
    const shapes = after(protocol, bytes)
    const changed = Buffer.from(changes.reduce(replaced, bytes.toString('latin1')) + (end ?? ''), 'latin1')
    if (flip !== null) changed[flip.at % changed.length] = flip.byte
    if (shapes.read(planFor(protocol), changed) !== null) fits += 1
    const [found, wanted] = bothWays(protocol, [changed], shapes)
    t.strictSame(found, wanted, changed.toString())
  }), { numRuns: 4_000 })
  t.ok(fits > 400, `${fits} of them were read by a shape`)
})

function rarely<T> (arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | null> {
  return fc.oneof({ weight: 20, arbitrary: fc.constant(null) }, arbitrary)
}

interface Change {
  readonly at: number
  readonly number: string
  readonly text: string
  /** Neither. */
  readonly other: string | null
}

/** The text with one of its values, counted from 0, replaced by one that mostly is of the same type. */
function replaced (text: string, { at, number, text: other, other: another }: Change): string {
  const values = [...text.matchAll(/(?<=[:,[]\s*)(?:"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null)(?=\s*[,}\]])/gs)]
  const value = values[at % Math.max(1, values.length)]
  if (value === undefined) return text
  const same = value[0].startsWith('"') ? other : number
  return text.slice(0, value.index) + Buffer.from(another ?? same).toString('latin1') + text.slice(value.index + value[0].length)
}

t.test('what follows a reply that was read by its shape is laid over it', async (t) => {
  for (const { file, protocol, bytes } of documents) {
    const shapes = after(protocol, bytes)
    for (const more of [' ', '\n{}', '{"usage":null}', '{"usage":{"prompt_tokens":null,"total_tokens":99,"input_tokens":4},"usageMetadata":{"totalTokenCount":7}}', bytes.toString('latin1')]) {
      const [found, wanted] = bothWays(protocol, [bytes, Buffer.from(more, 'latin1')], shapes)
      t.strictSame(found, wanted, `${file} ${more.slice(0, 20)}`)
    }
  }
})

t.test('two documents in one piece have no shape', async (t) => {
  const one = bytesOf({ ...kept, usage })
  const two = Buffer.concat([one, Buffer.from('\n'), bytesOf({ usage: { prompt_tokens: 1, completion_tokens: 1 } })])
  const [found, wanted] = bothWays('chat_completions', [two], after('chat_completions', two))
  t.strictSame(found, wanted)
})

t.test('kinds of content that are values, and texts within the usage, tell what they tell', async (t) => {
  const split = (modality: string): Buffer => bytesOf({ usageMetadata: { promptTokenCount: 3, promptTokensDetails: [{ modality, tokenCount: 3 }] } })
  for (const modality of ['text', 'TEXT']) {
    const [found, wanted] = bothWays('generate_content', [split('IMAGE')], after('generate_content', split(modality)))
    t.strictSame(found, wanted)
    t.match(found, { modalities: [{ modality: 'image', tokens: 3 }] })
  }
  const broken = (text: string): Buffer => Buffer.from(`{"usage":{"prompt_tokens":1,"tier":"${text}"}}`)
  const [found, wanted] = bothWays('chat_completions', [broken('\\x')], after('chat_completions', broken('a')))
  t.strictSame(found, wanted)
})

t.test('what only a tool told is no usage of the reply', async (t) => {
  const reply = bytesOf({ id: 'a', usage: null, tool_usage: { image_gen: { input_tokens: 5, output_tokens: 6, total_tokens: 11 } } })
  const [found, wanted] = bothWays('responses', [reply], after('responses', reply))
  t.strictSame(found, wanted)
  t.match(found, { usage: null, usageMissing: 'no_usage' })
})

t.test('a reply of more values than a pattern takes has no shape, and harms no other', async (t) => {
  const many = bytesOf({ usage: { prompt_tokens: 5, list: Array.from({ length: 2_000 }, () => 1) } })
  const shapes = after('chat_completions', many)
  for (const reply of [bytesOf({ ...kept, usage }), many]) {
    const [found, wanted] = bothWays('chat_completions', [reply], shapes)
    t.strictSame(found, wanted)
  }
})

t.test('what is no JSON is left to the scanner', async (t) => {
  const rows: ReadonlyArray<readonly [string, string]> = [
    ['{"usage":{"prompt_tokens":5,"x":--1}}', '{"usage":{"prompt_tokens":5,"x":--1}}'],
    ['{"usage":{"prompt_tokens":5,"total_tokens":--1}}', '{"usage":{"prompt_tokens":5,"total_tokens":--1}}'],
    ['{"usage":{"prompt_tokens":5,"x":"a","x":"b"}}', '{"usage":{"prompt_tokens":5,"x":"\u0001","x":"b"}}'],
    ['{"usage":{"prompt_tokens":5,"x":1,"x":2}}', '{"usage":{"prompt_tokens":5,"x":01,"x":2}}'],
    ['{"usage":{"prompt_tokens":5}} "\\"', '{"usage":{"prompt_tokens":5}} "\\"'],
  ]
  for (const [first, next] of rows) {
    const [found, wanted] = bothWays('chat_completions', [Buffer.from(next)], after('chat_completions', Buffer.from(first)))
    t.strictSame(found, wanted, next)
  }
})

t.test('in pieces it is read by the scanner', async (t) => {
  const reply = bytesOf({ ...kept, usage })
  const shapes = after('chat_completions', reply)
  for (let at = 1; at < reply.length; at++) {
    const [found, wanted] = bothWays('chat_completions', [reply.subarray(0, at), reply.subarray(at)], shapes)
    t.strictSame(found, wanted)
  }
})

t.test('numbers that are no counts, and floats beside counts, are left to the scanner', async (t) => {
  const plan = planFor('chat_completions')
  const shapes = after('chat_completions', bytesOf({ ...kept, usage: { ...usage, cost: 0.25, tier: 'a' } }))
  const fits = (changes: object): boolean => shapes.read(plan, bytesOf({ ...kept, usage: { ...usage, cost: 0.25, tier: 'a', ...changes } })) !== null
  t.ok(fits({ cost: 10.5, tier: '' }), 'what is not counted may be another')
  t.notOk(fits({ cost: 1e-7 }), 'but of the same kind')
  t.notOk(fits({ prompt_tokens: 0.5 }))
  t.notOk(fits({ prompt_tokens: -5 }))
  t.notOk(fits({ prompt_tokens: 1_234_567_890_123_456 }))
  t.notOk(fits({ prompt_tokens: null }))
})

t.test('a shape is kept by one app, four of them, the newest first', async (t) => {
  const plan = planFor('chat_completions')
  const shapes = new ShapeMemory()
  const reply = (extra: string): Buffer => bytesOf({ ...kept, [extra]: true, usage })
  for (const extra of ['a', 'b', 'c', 'd']) meter('chat_completions', [reply(extra)], {}, false, shapes)
  for (const extra of ['a', 'b', 'c', 'd']) t.not(shapes.read(plan, reply(extra)), null, extra)
  t.equal(new ShapeMemory().read(plan, reply('a')), null)
  const learnUntilKnown = (extra: string): number => {
    for (let times = 1; ; times++) {
      meter('chat_completions', [reply(extra)], {}, false, shapes)
      if (shapes.read(plan, reply(extra)) !== null) return times
    }
  }
  t.ok(learnUntilKnown('e') > 20, 'what was given for learning is used up')
  t.equal(shapes.read(plan, reply('a')), null, 'the oldest made room')
  for (const extra of ['b', 'c', 'd']) t.not(shapes.read(plan, reply(extra)), null, extra)
  for (let fits = 0; fits < 32; fits++) shapes.read(plan, reply('d'))
  t.equal(learnUntilKnown('f'), 1, 'readings that fit pay for another')
})

t.test('large replies, and those without usage, are not learnt', async (t) => {
  const large = bytesOf({ ...kept, choices: [{ message: { content: 'x'.repeat(4_096) } }], usage })
  const nothing = bytesOf({ ...kept, usage: null })
  const signed = bytesOf({ ...kept, usage: { ...usage, change: -1 } })
  for (const reply of [large, nothing, signed]) {
    const shapes = after('chat_completions', reply)
    t.equal(shapes.read(planFor('chat_completions'), reply), null)
    t.notMatch(inspect(shapes, { depth: Infinity }), 'pattern: ')
  }
})

t.test('no value of a reply is kept but the names that it told', async (t) => {
  const shapes = after('chat_completions', bytesOf({ ...kept, choices: [{ message: { content: 'a secret', tool: 'SECRETS' } }], usage }))
  shapes.read(planFor('chat_completions'), bytesOf({ ...kept, choices: [{ message: { content: 'another secret', tool: 'SECRET' } }], usage }))
  const seen = inspect(shapes, { depth: Infinity })
  t.match(seen, 'prompt_tokens')
  t.notMatch(seen, /secret/i)
})

t.test('a name that is told holds on to nothing else of its reply', async (t) => {
  setFlagsFromString('--expose-gc')
  const collect: () => void = runInNewContext('gc')
  const shapes = new ShapeMemory()
  const reply = (at: number): Buffer => bytesOf({ ...kept, id: `chatcmpl-${at}-of-thousands`, choices: [{ message: { content: 'x'.repeat(3_500) } }], usage })
  const ids: unknown[] = []
  const read = (from: number, to: number): void => {
    for (let at = from; at < to; at++) ids.push(meter('chat_completions', [reply(at)], {}, false, shapes).llm.responseId)
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
