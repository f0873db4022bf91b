/** What members say: replies in three protocols in which each piece tells whose it is, and the tokens are those of one attempt alone. */
import type { Step } from './far-side.js'

export interface Piece {
  readonly bytes: Buffer
  /** Tokens that the reply has told when this piece is there as a whole. */
  readonly tokens: number
}

export interface Said {
  readonly status: number
  readonly type: string
  readonly headers: Readonly<Record<string, string>>
  readonly pieces: readonly Piece[]
}

type Document = Readonly<Record<string, unknown>>

let told = 0

export function said (url: string, body: Document, mark: string, step: Step): Said {
  if (step.does === 'refuses') return refusal(step.status, mark, step.long)
  told += 1
  const [input, output] = [told * 7 + 1_000, told % 50 + 2]
  const protocol = url.includes('/chat/') ? 'chat' : url.includes('/messages') ? 'messages' : 'responses'
  const whole = { status: 200, headers: {} }
  if (body['stream'] !== true) {
    return step.does === 'fails_first'
      ? refusal(500, mark, false)
      : { ...whole, type: 'application/json', pieces: [...halves(documents[protocol](mark, input, output), input + output)] }
  }
  const events = streams[protocol](mark, input, output)
  const failing = [
    ...events.slice(0, 1), { data: { type: 'error', error: { type: 'overloaded_error', message: mark } }, tokens: events[0]?.tokens ?? 0 },
  ]
  return {
    ...whole,
    type: 'text/event-stream',
    pieces: (step.does === 'fails_first' ? failing : events).map(({ data, tokens }) => ({ bytes: eventOf(data), tokens })),
  }
}

function refusal (status: number, mark: string, long: boolean): Said {
  const text = JSON.stringify({ error: { message: long ? `${mark} ${'x'.repeat(300_000)} ${mark}` : mark } })
  const headers: Record<string, string> = status === 429 ? { 'retry-after': '1' } : {}
  return { status, type: 'application/json', headers, pieces: [{ bytes: Buffer.from(text), tokens: 0 }] }
}

function halves (document: Document, tokens: number): Piece[] {
  const bytes = Buffer.from(JSON.stringify(document))
  const half = bytes.length >> 1
  return [{ bytes: bytes.subarray(0, half), tokens: 0 }, { bytes: bytes.subarray(half), tokens }]
}

function eventOf (data: Document | string): Buffer {
  if (typeof data === 'string') return Buffer.from(`data: ${data}\n\n`)
  const name = typeof data['type'] === 'string' ? `event: ${data['type']}\n` : ''
  return Buffer.from(`${name}data: ${JSON.stringify(data)}\n\n`)
}

const documents = {
  chat: (mark: string, input: number, output: number): Document => ({
    id: mark,
    object: 'chat.completion',
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: mark }, finish_reason: 'stop' }],
    usage: { prompt_tokens: input, completion_tokens: output },
  }),
  messages: (mark: string, input: number, output: number): Document => ({
    id: mark,
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [{ type: 'text', text: mark }],
    stop_reason: 'end_turn',
    usage: { input_tokens: input, output_tokens: output },
  }),
  responses: (mark: string, input: number, output: number): Document => response(mark, 'completed', {
    input_tokens: input, output_tokens: output,
  }),
}

function response (mark: string, status: string, usage: Document | null): Document {
  return { id: mark, object: 'response', created_at: 1, status, model: 'm', output: [], usage }
}

interface Event {
  readonly data: Document | string
  readonly tokens: number
}

const words = [0, 1, 2]

const streams = {
  chat: (mark: string, input: number, output: number): Event[] => {
    const chunk = (delta: Document, finish: string | null): Document => ({
      id: mark, object: 'chat.completion.chunk', model: 'm', choices: [{ index: 0, delta, finish_reason: finish }], usage: null,
    })
    return [
      { data: chunk({ role: 'assistant', content: '' }, null), tokens: 0 },
      ...words.map((word) => ({ data: chunk({ content: `${mark} ${word}` }, null), tokens: 0 })),
      { data: chunk({}, 'stop'), tokens: 0 },
      {
        data: {
          id: mark, object: 'chat.completion.chunk', model: 'm', choices: [], usage: { prompt_tokens: input, completion_tokens: output },
        },
        tokens: input + output,
      },
      { data: '[DONE]', tokens: input + output },
    ]
  },
  messages: (mark: string, input: number, output: number): Event[] => [
    {
      data: {
        type: 'message_start',
        message: {
          id: mark, type: 'message', role: 'assistant', model: 'm', content: [], usage: { input_tokens: input, output_tokens: 1 },
        },
      },
      tokens: input + 1,
    },
    ...words.map((word) => ({
      data: { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: `${mark} ${word}` } }, tokens: input + 1,
    })),
    { data: { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: output } }, tokens: input + output },
    { data: { type: 'message_stop' }, tokens: input + output },
  ],
  responses: (mark: string, input: number, output: number): Event[] => [
    { data: { type: 'response.created', response: response(mark, 'in_progress', null) }, tokens: 0 },
    ...words.map((word) => ({ data: { type: 'response.output_text.delta', delta: `${mark} ${word}` }, tokens: 0 })),
    {
      data: { type: 'response.completed', response: response(mark, 'completed', { input_tokens: input, output_tokens: output }) },
      tokens: input + output,
    },
  ],
}
