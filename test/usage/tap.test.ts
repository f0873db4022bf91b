import t from 'tap'
import type { AbortSide, ModalityTokens } from '../../plugins/core/types.js'
import { bytesOf, cutAt, meter, requestFor, tapOn } from './meter-reply.js'

const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 }
const json = JSON.stringify({ model: 'm', choices: [{ finish_reason: 'stop' }], usage })
const stream = `data: ${json}\n\ndata: [DONE]\n\n`

t.test('the bytes choose the reader, however they are labelled', async (t) => {
  for (const type of [
    'application/json', 'text/event-stream', 'TEXT/EVENT-STREAM; charset=utf-8', 'text/plain', '', undefined, ['a', 'b'],
  ]) {
    for (const text of [
      json, stream, ` \r\n${json}`, `\n\n${stream}`, `\uFEFF${stream}`, `: comment\n\n${stream}`, `event: x\n${stream}`, `id: 1\n${stream}`,
      `retry: 1\n${stream}`,
    ]) {
      for (const pieces of [[Buffer.from(text)], bytesOf(Buffer.from(text))]) {
        const { llm, out } = meter('chat_completions', pieces, { 'content-type': type })
        t.strictSame([llm.usage.tokens?.output, out.toString()], [4, text], `${String(type)} ${text.slice(0, 12)}`)
      }
    }
  }
})

t.test('a text that only begins as events do is no stream that was cut', async (t) => {
  for (const text of ['rate limited', 'error: overloaded', 'invalid key', 'data', 'data:', 'id: 5\n\n']) {
    for (const [type, whole] of [['text/plain', true], ['text/event-stream', false], [undefined, false]] as const) {
      for (const pieces of [[Buffer.from(text)], bytesOf(Buffer.from(text))]) {
        const { tap } = tapOn(requestFor('chat_completions'), { 'content-type': type })
        const out = pieces.map((piece) => tap.push(piece))
        tap.end()
        t.strictSame([Buffer.concat(out.filter((piece) => piece !== null)).toString(), tap.whole], [text, whole], `${text} as ${type}`)
      }
    }
  }
  const { tap } = tapOn(requestFor('chat_completions'), { 'content-type': 'text/plain' })
  tap.push(Buffer.from('data: {"choices":[{"delta":{"content":"Hi"}}]}\n\n'))
  tap.end()
  t.equal(tap.whole, false, 'events that are labelled so are a stream, which was cut')
})

t.test('a byte order mark before JSON is part of neither', async (t) => {
  const text = `\uFEFF${json}`
  for (const type of ['application/json', 'text/event-stream', undefined]) {
    const { llm, out } = meter('chat_completions', [Buffer.from(text)], { 'content-type': type })
    t.strictSame([llm.usage.tokens?.output, out.toString()], [4, text])
    const apart = meter('chat_completions', [Buffer.from('\uFEFF'), Buffer.from(json)], { 'content-type': type })
    t.strictSame([apart.llm.usage.tokens?.output, apart.out.toString()], [4, text], 'in a piece of its own')
  }
})

t.test('a byte order mark that comes byte by byte is one', async (t) => {
  const mark = [0xef, 0xbb, 0xbf].map((byte) => Buffer.from([byte]))
  for (const [text, type] of [[json, 'application/json'], [stream, 'text/event-stream']] as const) {
    for (const takeOut of [false, true]) {
      const { llm, out } = meter('chat_completions', [...mark, Buffer.from(text)], { 'content-type': type }, takeOut)
      t.equal(llm.usage.tokens?.output, 4)
      t.equal(out.subarray(0, 4).toString('latin1'), `\u00ef\u00bb\u00bf${text[0]}`)
    }
  }
  t.strictSame(meter('chat_completions', mark.slice(0, 1)).out, mark[0], 'nothing but the begin of one')
})

t.test('a field that only an event stream may begin with', async (t) => {
  const text = `custom: 1\n${stream}`
  t.equal(meter('chat_completions', [Buffer.from(text)], { 'content-type': 'text/event-stream' }).llm.usage.tokens?.output, 4)
})

const missing: [name: string, text: string, reason: string][] = [
  ['no usage in JSON', '{"model":"m"}', 'no_usage'],
  ['no usage in a stream', 'data: {"choices":[{"finish_reason":"stop"}]}\n\n', 'no_usage'],
  ['a stream without its last event', 'data: {"choices":[]}\n\n', 'upstream_abort'],
  ['nothing at all', '', 'no_usage'],
  ['white space', '  \n', 'no_usage'],
  ['half a document', '{"model":"m","usage":{"prompt_tokens":1', 'parse_error'],
  ['half an event', 'data: {"model":"m"', 'upstream_abort'],
  ['half an object in a whole event', 'data: {"model":"m"\n\ndata: [DONE]\n\n', 'parse_error'],
  ['a page', '<html></html>', 'parse_error'],
  ['usage beyond all bounds', JSON.stringify({ usage: { prompt_tokens: 1, pad: 'x'.repeat(70_000) } }), 'too_large'],
  [
    'usage beyond all bounds in an event',
    `data: ${JSON.stringify({ usage: { prompt_tokens: 1, pad: 'x'.repeat(70_000) } })}\n\n`,
    'too_large',
  ],
]

for (const [name, text, reason] of missing) {
  t.test(`missing usage has its reason: ${name}`, async (t) => {
    const { llm } = meter('chat_completions', [Buffer.from(text)])
    t.strictSame([llm.usage.tokens, llm.usage.modalities, llm.usage.missing], [null, null, reason])
  })
}

t.test('usage that nests without an end is read as far as it tells', async (t) => {
  const levels = 10_000
  const event = `data: {"usage":{"prompt_tokens":3,"completion_tokens":4,"x":${'{"x":'.repeat(levels)}1${'}'.repeat(levels)}}}\n\n`
  t.match(meter('chat_completions', [Buffer.from(event), Buffer.from(event)]).llm.usage.tokens, { input: 3, output: 4 })
})

t.test('a number that no reply can have is no count', async (t) => {
  const most = 999_999_999_999
  for (const [told, counted, inconsistent] of [[most, most, false], [most + 1, 0, true], [Number.MAX_SAFE_INTEGER, 0, true]] as const) {
    const reply = (tokens: number): Buffer => Buffer.from(JSON.stringify({
      usage: { prompt_tokens: 5, completion_tokens: tokens, completion_tokens_details: { audio_tokens: tokens } },
    }))
    const { tokens: usage, inconsistent: usageInconsistent, modalities } = meter('chat_completions', [reply(told)]).llm.usage
    t.strictSame([usage?.input, usage?.output, usageInconsistent], [5, counted, inconsistent])
    t.strictSame(modalities, counted === 0 ? null : [{ direction: 'output', modality: 'audio', tokens: most }])
  }
})

t.test('a text that is no name of anything does not travel on whole', async (t) => {
  const long = 'x'.repeat(1_000)
  const reply = Buffer.from(JSON.stringify({ id: long, model: long, choices: [{ finish_reason: long }], usage }))
  for (const pieces of [[reply], cutAt(reply, [100])]) {
    const { llm } = meter('chat_completions', pieces)
    const { responseId, responseModel, finishReason, tokens } = llm.usage
    t.strictSame([responseId?.length, responseModel?.length, finishReason?.length, tokens?.output], [256, 256, 256, 4])
  }
})

t.test('tokens of a kind of content are whole', async (t) => {
  const inReply = (tokens: string): readonly ModalityTokens[] | null => {
    const reply = `{"usage":{"prompt_tokens":5,"prompt_tokens_details":{"audio_tokens":${tokens}}}}`
    return meter('chat_completions', [Buffer.from(reply)]).llm.usage.modalities
  }
  for (const tokens of ['-1', '1e400', '"-5"', '"5.5"', '" 5"', '""', '"1e3"', '"1234567890123"', 'true', '[5]', 'null', '0']) {
    t.equal(inReply(tokens), null, tokens)
  }
  for (const [tokens, count] of [['0.5', 1], ['4.2', 5], ['"5"', 5]] as const) {
    t.strictSame(inReply(tokens), [{ direction: 'input', modality: 'audio', tokens: count }], tokens)
  }
})

t.test('what may lack usage is not counted as lacking it', async (t) => {
  t.strictSame(meter('images.variations', [Buffer.from('{"created":1,"data":[]}')]).llm.usage.missing, null)
})

t.test('usage is told to be partial only where the reply broke off before its last word', async (t) => {
  const whole = requestFor('chat_completions')
  const { tap } = tapOn(whole)
  tap.push(Buffer.from(stream))
  tap.abort('client')
  t.strictSame([whole.usage.tokens?.output, whole.usage.partial], [4, false], 'all was told before it broke off')
  t.equal(meter('chat_completions', [Buffer.from(`data: ${json}\n\n`)]).llm.usage.partial, false, 'it ended without its last word')
})

t.test('a reply that broke off tells what was seen of it, or who broke it off', async (t) => {
  const start = 'data: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":9,"output_tokens":1}}}\n\n'
  for (const [side, reason] of [
    ['client', 'client_abort'], ['upstream', 'upstream_abort'], ['gateway', 'upstream_abort'],
  ] as [AbortSide, string][]) {
    for (const [protocol, text, expected] of [
      ['chat_completions', 'data: {"choices":[{"index":0}]}\n\n', null], ['messages', start, 9],
    ] as const) {
      const llm = requestFor(protocol)
      const { tap } = tapOn(llm)
      tap.push(Buffer.from(text))
      tap.abort(side)
      t.strictSame([llm.usage.tokens?.input ?? null, llm.usage.missing, llm.usage.partial], [
        expected, expected === null ? reason : null, expected !== null,
      ])
    }
  }
})

t.test('a stream that broke off has its model and its id from its first event', async (t) => {
  const llm = requestFor('responses')
  const { tap } = tapOn(llm, { 'content-type': 'text/event-stream' })
  tap.push(Buffer.from('data: {"type":"response.created","response":{"id":"r","model":"m","usage":null}}\n\n'))
  for (const delta of ['some', 'words', 'of text']) {
    tap.push(Buffer.from(`data: {"type":"response.output_text.delta","delta":"${delta}"}\n\n`))
  }
  tap.abort('upstream')
  t.strictSame([llm.usage.responseModel, llm.usage.responseId], ['m', 'r'])
})

t.test('the first ending counts', async (t) => {
  const llm = requestFor('chat_completions')
  const { tap } = tapOn(llm)
  tap.push(Buffer.from(json))
  t.equal(tap.end(), null)
  llm.usage.tokens = null
  t.equal(tap.end(), null)
  tap.abort('client')
  t.strictSame([llm.usage.tokens, llm.usage.missing], [null, null])
})

const message = [
  'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":9,"output_tokens":1}}}\n\n',
  ...['some', 'words', 'of text'].map(
    (text) => `event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"text":"${text}"}}\n\n`
  ),
  'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4}}\n\n',
  'event: ping\ndata: {"type":"ping"}\n\n',
  'event: message_stop\ndata: {"type":"message_stop"}\n\n',
]

t.test('a message is told in full once it has stopped, though the caller leaves before the upstream', async (t) => {
  for (const pieces of [[message.join('')], message]) {
    const llm = requestFor('messages')
    const { tap } = tapOn(llm)
    for (const piece of pieces) tap.push(Buffer.from(piece))
    tap.abort('client')
    t.strictSame([llm.usage.tokens?.output, llm.usage.partial], [4, false])
  }
})

t.test('knows when nothing more can come', async (t) => {
  const cases: [string, string, boolean][] = [
    ['chat_completions', json, true],
    ['chat_completions', json.slice(0, -1), false],
    ['chat_completions', `data: ${json}\n\n`, false],
    ['chat_completions', stream, true],
    [
      'chat_completions',
      'data: {}\n\ndata: {}\n\ndata: {}\n\ndata: {"choices":[{"index":0,"text":"long enough"}]}\n\ndata: [DONE]\n\n',
      true,
    ],
    ['responses', 'data: {"type":"response.completed","response":{}}\n\n', true],
    ['responses', 'data: {"type":"response.incomplete","response":{}}\n\n', true],
    ['responses', 'data: {"type":"response.failed","response":{}}\n\n', true],
    ['responses', 'data: {"type":"response.created","response":{}}\n\n', false],
    ['messages', 'data: {"type":"message_stop"}\n\n', true],
    ['messages', message.join(''), true],
    ['messages', message.slice(0, -1).join(''), false],
    ['images', 'data: {"type":"image_generation.completed"}\n\n', false],
    ['generate_content', '[{"responseId":"x"}]', false],
    ['generate_content', '{"responseId":"x"}', true],
  ]
  for (const [protocol, text, complete] of cases) {
    const { tap } = tapOn(requestFor(protocol))
    tap.push(Buffer.from(text))
    t.equal(tap.complete, complete, `${protocol} ${text.slice(0, 60)}`)
  }
})

t.test('a piece passes as it is, and in its turn', async (t) => {
  const { tap } = tapOn(requestFor('chat_completions'))
  for (const text of ['', 'data: {"a"', ':1}\n', '\n: x\n\n', stream]) {
    const piece = Buffer.from(text)
    t.equal(tap.push(piece), piece)
  }
})

t.test('finds the finish reason of a chat wherever it stands before its usage', async (t) => {
  const chunk = (reason: string | null, usage?: object): string =>
    `data: ${JSON.stringify({ model: 'm', choices: [{ index: 0, delta: { content: 'ab' }, finish_reason: reason }], usage })}\n\n`
  const last = `data: ${JSON.stringify({ choices: [], usage })}\n\n`
  const text = [chunk(null), chunk(null), chunk(null), chunk('length')]
  for (const pieces of [
    [...text, last], [...text], [text.join('')], [text.join('') + last], [...text, last, 'data: [DONE]\n\n'],
    [text.join(''), 'data: [DONE]\n\n'], [...text, ': x\n\n'],
    [...text.slice(0, 3), `\n${text[3]}${last}`], [...text.slice(0, 3), `\r\n${text[3]}`],
  ]) {
    const { llm } = meter('chat_completions', pieces.map((piece) => Buffer.from(piece)))
    t.equal(llm.usage.finishReason, 'length')
  }
})

t.test('a chat has told all once usage without a choice follows its finish reason', async (t) => {
  const event = (choices: object[], more = {}): Buffer => Buffer.from(`data: ${JSON.stringify({ model: 'm', choices, ...more })}\n\n`)
  const text = { index: 0, delta: { content: 'ab' }, finish_reason: null }
  const end = { index: 0, delta: {}, finish_reason: 'stop' }
  const first = { ...usage, completion_tokens: 1 }
  const cases: Array<[string, boolean, Buffer[]]> = [
    ['its own event', true, [event([text]), event([text]), event([text]), event([end]), event([], { usage })]],
    ['all in one piece', true, [Buffer.concat([event([text]), event([text]), event([text]), event([end]), event([], { usage })])]],
    ['another step behind it', false, [event([text]), event([end]), event([], { usage }), event([text]), event([text])]],
    ['the usage of that', true, [event([end]), event([], { usage: first }), event([text]), event([end]), event([], { usage })]],
    ['no finish reason', false, [event([text]), event([], { usage })]],
    ['usage beside a choice', false, [event([text], { usage }), event([end], { usage })]],
    ['nothing told without a choice', false, [event([text], { usage }), event([end]), event([], { usage: null })]],
  ]
  for (const [name, complete, pieces] of cases) {
    for (const side of ['client', 'upstream'] as const) {
      const llm = requestFor('chat_completions')
      const { tap } = tapOn(llm, { 'content-type': 'text/event-stream' })
      for (const piece of pieces) tap.push(piece)
      t.equal(tap.complete, complete, name)
      tap.abort(side)
      t.strictSame([llm.usage.tokens?.output, llm.usage.partial], [4, !complete], `${name}, ${side}`)
    }
  }
})

t.test('a chat that ends in the middle of another step is not whole, although it had usage before', async (t) => {
  const events = (choice: object): string => `data: ${JSON.stringify({ model: 'm', choices: [{ index: 0, ...choice }] })}\n\n`
  const step = `${events({ finish_reason: 'tool_calls' })}data: ${JSON.stringify({ choices: [], usage })}\n\n`
  const text = events({ delta: { content: 'ab' } })
  const cases: ReadonlyArray<readonly [bytes: string, whole: boolean]> = [
    [step, true], [step + text + text, false], [step + text + step, true], [`${step}${text}data: [DONE]\n\n`, true],
  ]
  for (const [bytes, whole] of cases) {
    for (const takeOut of [false, true]) {
      for (const pieces of [[Buffer.from(bytes)], bytesOf(Buffer.from(bytes))]) {
        const { tap } = tapOn(requestFor('chat_completions'), { 'content-type': 'text/event-stream' }, takeOut)
        for (const piece of pieces) tap.push(piece)
        tap.end()
        t.equal(tap.whole, whole, bytes)
      }
    }
  }
})
