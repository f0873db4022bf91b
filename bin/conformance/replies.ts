/** The plainest reply of each endpoint, with the usage that the checks expect. */
import type { Script } from './script.js'

export const json = (value: unknown, status = 200): Script => ({ status, pieces: [JSON.stringify(value)] })

export const sse = (...pieces: ReadonlyArray<string | Buffer>): Script => ({ headers: { 'content-type': 'text/event-stream' }, pieces })

/** One event; `event:` comes from the `type` of typed events. */
export function event (value: Readonly<Record<string, unknown>>): string {
  const name = typeof value.type === 'string' ? `event: ${value.type}\n` : ''
  return `${name}data: ${JSON.stringify(value)}\n\n`
}

export const done = 'data: [DONE]\n\n'

export const chatChunk = (content: string): string =>
  event({
    id: 'c1',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'model-1',
    choices: [{ index: 0, delta: { content }, finish_reason: null }],
  })

export const chatUsageChunk = (usage: object): string =>
  event({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'model-1', choices: [], usage })

export const messageStart = (usage: object): string =>
  event({ type: 'message_start', message: { id: 'm1', type: 'message', role: 'assistant', model: 'model-1', content: [], usage } })

export const messageDelta = (usage: object): string =>
  event({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage })

export const messageStop = event({ type: 'message_stop' })

/** `finishReason` is in the last chunk of a stream and in a whole reply. */
export const generated = (text: string, usageMetadata: object, finishReason?: 'STOP'): Record<string, unknown> =>
  ({ candidates: [{ index: 0, content: { role: 'model', parts: [{ text }] }, finishReason }], usageMetadata, modelVersion: 'model-1' })

export const responseEvent = (type: string, usage: object | null): string =>
  event({ type, sequence_number: 0, response: { id: 'r1', object: 'response', model: 'model-1', output: [], usage } })

export const plainChatUsage = { prompt_tokens: 12, completion_tokens: 5, total_tokens: 17 }
const responsesUsage = { input_tokens: 13, output_tokens: 6, total_tokens: 19 }
const messagesUsage = { input_tokens: 14, output_tokens: 7 }
const geminiUsage = { promptTokenCount: 15, candidatesTokenCount: 8, totalTokenCount: 23 }

const chat = {
  id: 'c1',
  object: 'chat.completion',
  created: 1,
  model: 'model-1',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
  usage: plainChatUsage,
}
const message = {
  id: 'm1',
  type: 'message',
  role: 'assistant',
  model: 'model-1',
  content: [{ type: 'text', text: 'Hi' }],
  stop_reason: 'end_turn',
  usage: messagesUsage,
}
const response = { id: 'r1', object: 'response', status: 'completed', model: 'model-1', output: [], usage: responsesUsage }

interface Asked {
  readonly url: string
  readonly body: Buffer
}

type Answer = (body: string) => Script

const streams = (body: string): boolean => /"stream"\s*:\s*true/.test(body)

const chatStream: Answer = (body) =>
  sse(chatChunk('Hi'), ...(/"include_usage"\s*:\s*true/.test(body) ? [chatUsageChunk(plainChatUsage)] : []), done)

const answers: ReadonlyArray<readonly [path: RegExp, answer: Answer]> = [
  [/\/v1\/chat\/completions(\?|$)/, (body) => streams(body) ? chatStream(body) : json(chat)],
  [/\/v1\/responses(\?|$)/, () => json(response)],
  [/\/v1\/responses\/input_tokens(\?|$)/, () => json({ object: 'response.input_tokens', input_tokens: 3 })],
  [/\/v1\/messages(\?|$)/, () => json(message)],
  [/\/v1\/messages\/count_tokens(\?|$)/, () => json({ input_tokens: 3 })],
  [/\/v1\/embeddings(\?|$)/, () => json({
    object: 'list',
    model: 'model-1',
    data: [{ object: 'embedding', index: 0, embedding: [0.5] }],
    usage: { prompt_tokens: 8, total_tokens: 8 },
  })],
  [/\/v1\/images\/(generations|edits|variations)(\?|$)/, () => json({ created: 1, data: [{ b64_json: 'AA==' }] })],
  [/\/v1(beta)?\/(models|tunedModels)\/.+:countTokens/, () => json({ totalTokens: 3 })],
  [/\/v1(beta)?\/(models|tunedModels)\/.+:\w+/, () => json(generated('Hi', geminiUsage, 'STOP'))],
  [/\/v1(beta)?\/models(\/|\?|$)/, () => json({ object: 'list', data: [], models: [], has_more: false })],
]

/** The provider's reply; a path that no provider serves gets its 404. */
export function nativeReply ({ url, body }: Asked): Script {
  const answer = answers.find(([path]) => path.test(url))?.[1]
  return answer === undefined ? json({ error: { message: 'no such path here' } }, 404) : answer(body.toString())
}
