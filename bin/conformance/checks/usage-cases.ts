/** Requests of the usage checks, the far side's answers, and the expected counts. */
import { expect, type Change, type Kind } from '../check.js'
import type { Script } from '../script.js'
import {
  chatUsageChunk, done, event, generated, json, messageDelta, messageStart, messageStop, plainChatUsage, responseEvent, sse,
} from '../replies.js'
import { eventsOf, type Reply } from '../wire.js'
import { streamed } from './stream-cases.js'

export interface Metered {
  readonly number: number
  readonly title: string
  readonly kind: Kind
  /** None: the plain request of its kind. */
  readonly change?: (model: string) => Change
  /** Reply of the far side; none: its plain reply. */
  readonly script?: Script
  readonly counts: readonly [input: number, output: number]
  readonly reply?: (reply: Reply) => void
}

const stream = (): Change => ({ fields: { stream: true } })
const usageChunks = (reply: Reply): number => eventsOf(reply.text).filter((data) => /"choices":\[\]/.test(data)).length

export const metered: readonly Metered[] = [
  {
    number: 40,
    title: 'chat with cached, cache-write and reasoning tokens',
    kind: 'chat',
    script: json({
      object: 'chat.completion',
      model: 'model-1',
      choices: [],
      usage: {
        prompt_tokens: 100,
        completion_tokens: 40,
        total_tokens: 140,
        prompt_tokens_details: { cached_tokens: 30, cache_write_tokens: 20 },
        completion_tokens_details: { reasoning_tokens: 15 },
      },
    }),
    counts: [100, 40],
  },
  {
    number: 41,
    title: 'a chat stream that did not ask for usage: metered, no extra chunk',
    kind: 'chat',
    change: stream,
    counts: [12, 5],
    reply: (reply) => expect(usageChunks(reply) === 0, `${usageChunks(reply)} usage chunks`),
  },
  {
    number: 42,
    title: 'a chat stream that asked: exactly one usage chunk',
    kind: 'chat',
    change: streamed.chat,
    counts: [12, 5],
    reply: (reply) => expect(usageChunks(reply) === 1, `${usageChunks(reply)} usage chunks`),
  },
  {
    number: 43,
    title: 'usage: null in other chunks is no usage',
    kind: 'chat',
    change: streamed.chat,
    script: sse(
      event({ choices: [], usage: null }), chatUsageChunk(plainChatUsage), event({ choices: [{ delta: {} }], usage: null }), done
    ),
    counts: [12, 5],
  },
  {
    number: 44,
    title: 'responses: the incomplete end is metered, the beginning is not',
    kind: 'responses',
    change: stream,
    script: sse(
      responseEvent('response.created', { input_tokens: 900, output_tokens: 900, total_tokens: 1800 }),
      responseEvent('response.incomplete', { input_tokens: 31, output_tokens: 32, total_tokens: 63 })
    ),
    counts: [31, 32],
  },
  {
    number: 45,
    title: 'messages: the last value of a stream counts (2037, then 15665)',
    kind: 'messages',
    change: stream,
    script: sse(
      messageStart({ input_tokens: 2037, output_tokens: 1 }), messageDelta({ input_tokens: 15_665, output_tokens: 50 }), messageStop
    ),
    counts: [15_665, 50],
  },
  {
    number: 46,
    title: 'messages: what the last event leaves out keeps its first value',
    kind: 'messages',
    change: stream,
    script: sse(
      messageStart({ input_tokens: 43, cache_read_input_tokens: 7, output_tokens: 1 }),
      messageDelta({ output_tokens: 51, input_tokens: null }),
      messageStop
    ),
    counts: [50, 51],
  },
  {
    number: 47,
    title: 'messages: compaction iterations count once',
    kind: 'messages',
    script: json({
      type: 'message',
      model: 'model-1',
      content: [],
      usage: {
        input_tokens: 612,
        output_tokens: 100,
        iterations: [
          { type: 'compaction', input_tokens: 60_385, output_tokens: 52 },
          { type: 'message', input_tokens: 612, output_tokens: 100 },
        ],
      },
    }),
    counts: [60_997, 152],
  },
  {
    number: 48,
    title: 'messages: a doubled start counts once',
    kind: 'messages',
    change: stream,
    script: sse(
      messageStart({ input_tokens: 61, output_tokens: 1 }), messageStart({ input_tokens: 61, output_tokens: 1 }),
      messageDelta({ output_tokens: 53 }), messageStop
    ),
    counts: [61, 53],
  },
  {
    number: 49,
    title: 'messages: cache writes of both lifetimes, split only in the start',
    kind: 'messages',
    change: stream,
    script: sse(
      messageStart({
        input_tokens: 10,
        cache_creation_input_tokens: 30,
        cache_creation: { ephemeral_5m_input_tokens: 20, ephemeral_1h_input_tokens: 10 },
        output_tokens: 1,
      }),
      messageDelta({ cache_creation_input_tokens: 30, output_tokens: 54 }),
      messageStop
    ),
    counts: [40, 54],
  },
  {
    number: 50,
    title: 'generateContent: the last chunk counts, thoughts are output',
    kind: 'gemini',
    change: streamed.gemini,
    script: sse(
      event(generated('a', { promptTokenCount: 71, thoughtsTokenCount: 9, totalTokenCount: 80 })),
      event(generated('b', { promptTokenCount: 71, candidatesTokenCount: 20, thoughtsTokenCount: 9, totalTokenCount: 100 }, 'STOP'))
    ),
    counts: [71, 29],
  },
  {
    number: 51,
    title: 'generateContent: tool-use prompts are input',
    kind: 'gemini',
    script: json(generated(
      'a', { promptTokenCount: 10, toolUsePromptTokenCount: 72, candidatesTokenCount: 33, totalTokenCount: 115 }, 'STOP'
    )),
    counts: [82, 33],
  },
  {
    number: 52,
    title: 'images: the completed event of a stream',
    kind: 'images',
    change: stream,
    script: sse(
      event({ type: 'image_generation.partial_image', b64_json: 'AA==' }),
      event({
        type: 'image_generation.completed',
        b64_json: 'AA==',
        usage: { input_tokens: 83, input_tokens_details: { text_tokens: 3, image_tokens: 80 }, output_tokens: 34, total_tokens: 117 },
      })
    ),
    counts: [83, 34],
  },
]
