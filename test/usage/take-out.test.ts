/** A stream whose usage only the gateway asked for loses the event that brings it, and not a byte more. */
import { readFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import t from 'tap'
import { bytesOf, cutAt, eventsOf, meter, requestFor, tapOn } from './meter-reply.js'

const folder = new URL('../fixtures/usage/chat_completions/', import.meta.url)
const eventStream = { 'content-type': 'text/event-stream; charset=utf-8' }

/** The stream without its extra events, by looking at each event as a whole. */
function without (bytes: Buffer): Buffer {
  return Buffer.concat(eventsOf(bytes).filter((event) => !isExtra(event)))
}

function isExtra (event: Buffer): boolean {
  const data = event.toString().split(/\r\n|\r|\n/).filter((line) => line.startsWith('data:')).map((line) => line.slice(5)).join('\n')
  try {
    const { choices, usage, error } = JSON.parse(data)
    return (choices ?? []).length === 0 && error === undefined && Number.isInteger(usage?.prompt_tokens)
  } catch {
    return false
  }
}

function leftOf (pieces: readonly Buffer[]): Buffer {
  return meter('chat_completions', pieces, eventStream, true).out
}

for (const file of [
  'asked.sse', 'asked-crlf.sse', 'asked-cr.sse', 'asked-no-done.sse', 'asked-unended.sse', 'framing.sse', 'every-chunk.sse', 'decoys.sse',
  'null-after.sse', 'last-choice.sse', 'not-asked.sse', 'filtered-first.sse', 'x-groq.sse', 'broken-event.sse', 'one-object.sse',
  'asked-no-choices.sse', 'asked-null-choices.sse', 'choice-usage.sse', 'choice-usage-twice.sse', 'error-with-empty-choices.sse',
]) {
  t.test(file, async (t) => {
    const bytes = readFileSync(new URL(file, folder))
    const expected = without(bytes)
    const loses = ['asked', 'framing', 'every', 'decoys', 'filtered', 'choice-usage-twice'].some((name) => file.startsWith(name))
    t.equal(expected.length < bytes.length, loses)
    t.ok(leftOf([bytes]).equals(expected), 'in one piece')
    t.ok(leftOf(eventsOf(bytes)).equals(expected), 'one event per piece')
    t.ok(leftOf(bytesOf(bytes)).equals(expected), 'one byte per piece')
    const wrong = [...bytes.keys()].find((at) => !leftOf(cutAt(bytes, [at])).equals(expected))
    t.equal(wrong, undefined, 'cut at any byte')
  })
}

t.test('what has its text elsewhere than in choices keeps it', async (t) => {
  const event = (text: string, tokens: number): string => `data: ${JSON.stringify({
    response: text, usage: { prompt_tokens: 3, completion_tokens: tokens, total_tokens: 3 + tokens },
  })}\n\n`
  const bytes = Buffer.from(event('He', 1) + event('llo', 2) + event('', 2) + 'data: [DONE]\n\n')
  for (const pieces of [[bytes], eventsOf(bytes), bytesOf(bytes)]) t.equal(leftOf(pieces).toString(), bytes.toString())
})

t.test('any stream, however it is cut', async (t) => {
  const choice = fc.record({ index: fc.constant(0), delta: fc.record({ content: fc.string() }) })
  const usage = fc.constantFrom(undefined, null, {}, { prompt_tokens: 3, completion_tokens: 4 }, { prompt_tokens: 0 })
  const data = fc.record({
    id: fc.constant('c'),
    usage,
    choices: fc.array(choice, { maxLength: 1 }),
    extra: fc.constantFrom(undefined, { usage: { prompt_tokens: 1 }, choices: [] }),
  })
  const event = fc.oneof(data.map((value) => `data: ${JSON.stringify(value)}`), fc.constantFrom(
    ': keepalive', 'data: [DONE]', 'event: x', '', 'data: {"choices":[],"usage":{"prompt_tokens":1}'
  ))
  const stream = fc.tuple(fc.array(event, { maxLength: 8 }), fc.constantFrom('\n', '\r\n', '\r'))
    .map(([events, end]) => events.map((text) => text + end + end).join(''))
  fc.assert(fc.property(stream, fc.array(fc.nat(), { maxLength: 6 }), (text, cuts) => {
    const bytes = Buffer.from(text)
    const pieces = cutAt(bytes, cuts.map((at) => at % (bytes.length + 1)))
    return leftOf(pieces).equals(without(bytes))
  }), { numRuns: 4_000 })
  t.pass()
})

t.test('an empty usage object after one that told is not the event to take out', async (t) => {
  const told = 'data: {"id":"c","usage":{"prompt_tokens":3,"completion_tokens":4},"choices":[]}\n\n'
  const empty = 'data: {"id":"c","usage":{},"choices":[]}\n\n'
  t.equal(leftOf([Buffer.from(told + empty)]).toString(), empty)
})

t.test('holds back nothing but what may be the event to take out', async (t) => {
  const { tap } = tapOn(requestFor('chat_completions'), eventStream, true)
  const passed = (text: string): string => tap.push(Buffer.from(text))?.toString() ?? ''
  const ordinary = 'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
  t.equal(passed(ordinary), ordinary, 'a whole event')
  t.equal(passed('data: {"id":"x"'), '', 'half an event, of which nothing is known')
  t.equal(passed(',"choices":[{"index":0,'), 'data: {"id":"x","choices":[{"index":0,', 'half an event that has a choice')
  t.equal(passed('"delta":{}}]}\n\n'), '"delta":{}}]}\n\n')
  t.equal(passed(ordinary + 'data: {"choices":[],'), ordinary, 'the whole events before half of one')
  t.equal(passed('"usage":{"prompt_tokens":1}}'), '')
  t.equal(passed('\n\n' + ordinary), ordinary, 'the rest of the piece that ends it')
  t.equal(tap.end(), null)
})

t.test('lets go of an event that is too large to be the one', async (t) => {
  const { tap } = tapOn(requestFor('chat_completions'), eventStream, true)
  const start = `data: {"id":"${'x'.repeat(10_000)}`
  t.equal(tap.push(Buffer.from(start)), null)
  t.equal(tap.push(Buffer.from('y'.repeat(10_000)))?.length, start.length + 10_000)
  const rest = '","choices":[],"usage":{"prompt_tokens":1}}\n\n'
  t.equal(tap.push(Buffer.from(rest))?.toString(), rest, 'and all of it')
  t.equal(tap.push(Buffer.from('data: {"choices":[],"usage":{"prompt_tokens":1}}\n\n')), null, 'the next one is looked at again')
})

t.test('measures what it holds back event by event, and not by what came before', async (t) => {
  const ordinary = 'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
  const extra = 'data: {"choices":[],"usage":{"prompt_tokens":1}}\n\n'
  const half = (text: string): Buffer[] => cutAt(Buffer.from(text), [40])
  const many = Array.from({ length: 500 }, () => half(`data: {"id":"${'x'.repeat(60)}","choices":[]}\n\n`)).flat()
  const events = ordinary.repeat(400)
  t.equal(leftOf([...many, ...half(extra)]).length, many.reduce((sum, { length }) => sum + length, 0), 'behind many that came in halves')
  const large = Buffer.from(events + extra)
  t.equal(leftOf(cutAt(large, [events.length + 20])).toString(), events, 'at the end of a large piece')
})

t.test('hands over a last event that never ended', async (t) => {
  for (const [text, left] of [['data: {"id":', 'data: {"id":'], ['data: {"choices":[],"usage":{"prompt_tokens":1}}', '']]) {
    t.equal(leftOf([Buffer.from(String(text))]).toString(), left)
  }
})

t.test('passes a piece on as it is, not a copy of it', async (t) => {
  const { tap } = tapOn(requestFor('chat_completions'), eventStream, true)
  const piece = Buffer.from('data: {"choices":[{"index":0}]}\n\n')
  t.equal(tap.push(piece), piece)
  t.equal(tap.push(Buffer.alloc(0))?.length, 0)
})

t.test('lets go of a piece that was passed on', async (t) => {
  setFlagsFromString('--expose-gc')
  const collect: () => void = runInNewContext('gc')
  const { tap } = tapOn(requestFor('chat_completions'), eventStream, true)
  const push = (): WeakRef<Buffer> => {
    const piece = Buffer.from('data: {"choices":[{"index":0}]}\n\n')
    tap.push(piece)
    return new WeakRef(piece)
  }
  const piece = push()
  await new Promise(setImmediate)
  collect()
  t.equal(piece.deref(), undefined)
  t.equal(tap.end(), null)
})

t.test('what only this gateway asked for stays where it cannot be taken out: in compressed bytes', async (t) => {
  const { tap } = tapOn(requestFor('chat_completions'), { ...eventStream, 'content-encoding': 'gzip' }, true)
  const piece = Buffer.from([0x1f, 0x8b])
  t.equal(tap.push(piece), piece)
})
