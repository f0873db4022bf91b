/**
 * The work that every target gets: fixed request bytes, and the reply that the mock upstream sends for each. The model
 * name in the body picks the reply, so that any gateway can stand in front of the mock whatever it does to paths.
 */

export const callerKey = 'sk-bench-caller-0123456789abcdef0123456789abcdef'
export const unknownKey = 'sk-bench-unknown-0123456789abcdef0123456789abcdef'
export const upstreamKey = 'sk-bench-upstream-0123456789abcdef0123456789abcdef'

export type Delivery =
  /** One reply with a content-length. */
  | { readonly kind: 'whole' }
  /** Server-sent events, each in a write of its own: one every `gapMs`, or all at once where that is 0. */
  | { readonly kind: 'events', readonly gapMs: number }
  /** Server-sent events: one at once, the others when the driver says so. */
  | { readonly kind: 'held' }

export interface Work {
  readonly model: string
  readonly path: string
  readonly request: Buffer
  /** The body of the reply, as a caller must get it. */
  readonly reply: Buffer
  /** `reply` in the pieces that are written one by one; one piece for a whole reply. */
  readonly pieces: readonly Buffer[]
  readonly delivery: Delivery
  /** What a gateway must count for one reply. */
  readonly tokens: { readonly input: number, readonly output: number }
}

const usage = {
  prompt_tokens: 180,
  completion_tokens: 42,
  total_tokens: 222,
  prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0, accepted_prediction_tokens: 0, rejected_prediction_tokens: 0 },
}
const chatTokens = { input: 180, output: 42 }

const system = 'You are a careful assistant. Answer in plain words, keep to what is asked, and say so when you do not know.'
const question = 'Summarise the following report in three sentences for a reader in a hurry. '

function chatRequest (model: string, bytes: number, fields: Record<string, unknown>): Buffer {
  const body = (filler: string): string => JSON.stringify({
    model,
    messages: [{ role: 'system', content: system }, { role: 'user', content: question + filler }],
    temperature: 0.2,
    max_tokens: 256,
    ...fields,
  })
  const missing = Math.max(0, bytes - Buffer.byteLength(body('')))
  return Buffer.from(body('The quick brown fox jumps over the lazy dog. '.repeat(Math.ceil(missing / 45)).slice(0, missing)))
}

function completion (model: string): Buffer {
  return Buffer.from(JSON.stringify({
    id: 'chatcmpl-bench0123456789abcdef',
    object: 'chat.completion',
    created: 1790000000,
    model,
    choices: [{
      index: 0,
      message: {
        role: 'assistant',
        content: 'The report says that "throughput" held steady, that costs fell by a tenth, and that nothing else changed.\n' +
          'Two sites closed for a week in March.',
        refusal: null,
      },
      logprobs: null,
      finish_reason: 'stop',
    }],
    usage,
    service_tier: 'default',
    system_fingerprint: 'fp_bench0000',
  }))
}

/** One chat request of about `requestBytes` (1 KB by default) and one reply of about 700 bytes. */
export function chatWork (model = 'bench-small', requestBytes = 1024): Work {
  const reply = completion(model)
  return {
    model,
    path: '/v1/chat/completions',
    request: chatRequest(model, requestBytes, {}),
    reply,
    pieces: [reply],
    delivery: { kind: 'whole' },
    tokens: chatTokens,
  }
}

/** A streamed chat reply of `events` events, the last two of them usage and `[DONE]`. */
export function streamWork (model: string, events: number, delivery: Delivery): Work {
  const head = {
    id: 'chatcmpl-bench0123456789abcdef',
    object: 'chat.completion.chunk',
    created: 1790000000,
    model,
    service_tier: 'default',
    system_fingerprint: 'fp_bench0000',
  }
  const event = (data: string): Buffer => Buffer.from(`data: ${data}\n\n`)
  const pieces = Array.from({ length: events - 2 }, (_, at) => event(JSON.stringify({
    ...head,
    choices: [{ index: 0, delta: { content: ` word${at}` }, logprobs: null, finish_reason: at === events - 3 ? 'stop' : null }],
    usage: null,
    obfuscation: 'abcdefghij',
  })))
  pieces.push(event(JSON.stringify({ ...head, choices: [], usage })), event('[DONE]'))
  return {
    model,
    path: '/v1/chat/completions',
    request: chatRequest(model, 1024, { stream: true, stream_options: { include_usage: true } }),
    reply: Buffer.concat(pieces),
    pieces,
    delivery,
    tokens: chatTokens,
  }
}

/** An image reply of `megabytes` of base64 in one JSON string, usage behind it. */
export function imageWork (megabytes: number): Work {
  const model = `bench-image-${megabytes}`
  const reply = Buffer.from(JSON.stringify({
    created: 1790000000,
    data: [{ b64_json: 'iVBORw0KGgoAAAANSUhEUgAABAAAAAQACAIAAADwf7zU'.repeat(Math.ceil(megabytes * 1_000_000 / 44)) }],
    usage: { total_tokens: 4210, input_tokens: 50, output_tokens: 4160, input_tokens_details: { text_tokens: 50, image_tokens: 0 } },
  }))
  return {
    model,
    path: '/v1/images/generations',
    request: Buffer.from(JSON.stringify({ model, prompt: 'A lighthouse at dusk, oil on canvas.', n: 1, size: '1024x1024' })),
    reply,
    pieces: [reply],
    delivery: { kind: 'whole' },
    tokens: { input: 50, output: 4160 },
  }
}

export const sseEvents = 200

/** Every work that the mock upstream knows, by model name. */
export function makeWorks (): Map<string, Work> {
  const works = [
    chatWork(),
    ...[4, 32, 256, 2048, 16_384, 32_000].map(kilobytes => chatWork(`bench-body-${kilobytes}k`, kilobytes * 1024)),
    streamWork('bench-burst', sseEvents, { kind: 'events', gapMs: 0 }),
    streamWork('bench-events', sseEvents, { kind: 'events', gapMs: 1 }),
    streamWork('bench-stepped', sseEvents, { kind: 'held' }),
    streamWork('bench-first', 20, { kind: 'events', gapMs: 5 }),
    streamWork('bench-held', 4, { kind: 'held' }),
    imageWork(10),
  ]
  return new Map(works.map(work => [work.model, work]))
}

/** The request of a caller as bytes on the wire. */
export function requestBytes (work: Work, key = callerKey): Buffer {
  const head = `POST ${work.path} HTTP/1.1\r\nhost: 127.0.0.1\r\nuser-agent: bench/1\r\naccept: application/json\r\n` +
    `content-type: application/json\r\nauthorization: Bearer ${key}\r\ncontent-length: ${work.request.length}\r\n\r\n`
  return Buffer.concat([Buffer.from(head, 'latin1'), work.request])
}
