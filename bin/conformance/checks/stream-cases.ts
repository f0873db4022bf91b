/** For each protocol: how to ask for a stream, and a complete one. */
import type { Change, Subject } from '../check.js'
import {
  chatChunk, chatUsageChunk, done, event, generated, messageDelta, messageStart, messageStop, plainChatUsage, responseEvent, sse,
} from '../replies.js'
import type { Script } from '../script.js'
import type { Reply } from '../wire.js'

export const streamKinds = ['chat', 'responses', 'messages', 'gemini'] as const

export type StreamKind = typeof streamKinds[number]

/** How a request of each protocol asks for a stream. */
export const streamed: Readonly<Record<StreamKind, (model: string) => Change>> = {
  chat: () => ({ fields: { stream: true, stream_options: { include_usage: true } } }),
  responses: () => ({ fields: { stream: true } }),
  messages: () => ({ fields: { stream: true } }),
  gemini: (model) => ({ path: `/v1beta/models/${model}:streamGenerateContent?alt=sse` }),
}

const geminiUsage = { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 }
const crlf = (text: string): string => text.replaceAll('\n', '\r\n')

export const whole: Readonly<Record<StreamKind, readonly string[]>> = {
  chat: [chatChunk('Hi'), ': comment\n\n', chatUsageChunk(plainChatUsage), done],
  responses: [
    responseEvent('response.created', null), responseEvent('response.completed', { input_tokens: 1, output_tokens: 1, total_tokens: 2 }),
  ],
  messages: [messageStart({ input_tokens: 1, output_tokens: 1 }), event({ type: 'ping' }), messageDelta({ output_tokens: 1 }), messageStop],
  gemini: [event(generated('Hi', geminiUsage)), event(generated('!', geminiUsage, 'STOP'))].map(crlf),
}

export async function askStream (subject: Subject, kind: StreamKind, change: Change = {}): Promise<Reply> {
  return await subject.ask(kind, { ...streamed[kind](subject.options.models.gemini), ...change })
}

/** A stream that breaks off after its first event. */
export function cutOff (kind: StreamKind): Script {
  return { ...sse(...whole[kind].slice(0, 1)), then: 'cut' }
}

/** Plays a stream of each protocol in turn; returns what was seen of each. */
export async function playEach (
  subject: Subject, scriptOf: (kind: StreamKind) => Script, see: (kind: StreamKind, reply: Reply) => string
): Promise<string> {
  const seen: string[] = []
  for (const kind of streamKinds) {
    subject.far.reset()
    subject.far.play(scriptOf(kind))
    seen.push(see(kind, await askStream(subject, kind)))
  }
  return seen.join(', ')
}
