/**
 * How the replies of each protocol tell their token usage, as data for the readers in `plugins/usage/`. Evidence for each
 * line: the replies of the providers in test/fixtures. A path is a list of object keys joined by dots; `*` is every element of an array,
 * `#` the number of its elements.
 */

import { generateContentServed, imagesServed, messagesServed, openaiServed, responsesServed, type ServedRules } from './served-rules.js'

/** Where the numbers stand inside a usage object. Of several paths the first that holds a number counts. */
export interface UsageCounts {
  readonly input: readonly string[]
  readonly cacheRead: readonly string[]
  /** All tokens written to a cache; what the two lifetimes below do not explain is of unknown lifetime. */
  readonly cacheWrite: readonly string[]
  readonly cacheWrite5m: readonly string[]
  readonly cacheWrite1h: readonly string[]
  readonly toolInput: readonly string[]
  readonly output: readonly string[]
  readonly reasoning: readonly string[]
  readonly total: readonly string[]
  /** True where `input` holds the cached tokens too, so that they must be taken out of it. */
  readonly inputHoldsCache: boolean
  /** True where `output` holds the reasoning too. The reported total overrules it where it fits only the other reading. */
  readonly outputHoldsReasoning: boolean
  /** Entries of a list inside the usage object that its own numbers leave out. */
  readonly added: { readonly list: string, readonly type: string } | null
  /** The split by kind of content: an object of `<kind>_tokens`, or a list of `{modality, tokenCount}`. */
  readonly inputKinds: readonly string[]
  readonly outputKinds: readonly string[]
  /** The kind of all output of a reply that gives no split. */
  readonly outputKind: string | null
}

/** What a caller must send to get usage in a stream, and what the answer to it adds to the stream. */
export interface UsageRequest {
  /** A field of the body, an object, and its switch. */
  readonly field: string
  readonly flag: string
  /** The list that is empty in the event that was added. */
  readonly emptyList: string
}

/** How a stream says that it is whole. One that ends without it was cut, however cleanly it ends. */
export interface StreamEnding {
  /** Values of an event's `type`, besides those after which no usage comes. */
  readonly types: readonly string[]
  /** Paths of a text that stands in the last event with content, such as why a model stopped. */
  readonly reasons: readonly string[]
  /** A stream may be an array of documents, which ends in the same way. */
  readonly arrays: boolean
}

export interface UsageRules {
  readonly name: string
  /** Paths of usage objects in a reply, an event or an array element. Where several stand, a later path wins over an earlier. */
  readonly usage: readonly string[]
  /** Paths of what tools of the reply made with models of their own: not in its usage, and on the same bill. */
  readonly tools: readonly string[]
  readonly model: readonly string[]
  readonly id: readonly string[]
  readonly finish: readonly string[]
  /** Paths of when the reply was made, and of an event's number: for an event of ours that ends a stream. */
  readonly created: readonly string[]
  readonly sequence: readonly string[]
  /** Paths of what stands in a reply or an event that tells of a failure after its status was success. */
  readonly errors: readonly string[]
  /** Values of a reply's or an event's `type` that tell the same. */
  readonly failed: readonly string[]
  /**
   * Bytes that every usage object holds. An event without them is passed by unread, so they begin with a byte that is
   * rare in events: the search stops at each of it.
   */
  readonly sign: string
  /** How usage objects of several events make one: per field the last that is not null, or the sum of all. */
  readonly merge: 'last' | 'sum'
  /** Values of an event's `type` after which no usage comes any more. */
  readonly last: readonly string[]
  /**
   * What a stream ends with beside `[DONE]`, a failure and the events of `last`. Null where the protocol promises nothing.
   * Sources: the streaming references of each API; compatible servers leave out `[DONE]` and never the reason.
   */
  readonly ending: StreamEnding | null
  readonly counts: UsageCounts
  readonly served: ServedRules
  readonly request: UsageRequest | null
}

const none = {
  cacheRead: [],
  cacheWrite: [],
  cacheWrite5m: [],
  cacheWrite1h: [],
  toolInput: [],
  reasoning: [],
  total: [],
  added: null,
  inputKinds: [],
  outputKinds: [],
  outputKind: null,
} as const

/** Chat-style and responses-style names alike: third parties mix them. */
const openaiCounts: UsageCounts = {
  ...none,
  input: ['prompt_tokens', 'input_tokens'],
  cacheRead: ['prompt_tokens_details.cached_tokens', 'input_tokens_details.cached_tokens', 'prompt_cache_hit_tokens'],
  cacheWrite: ['prompt_tokens_details.cache_write_tokens', 'input_tokens_details.cache_write_tokens'],
  output: ['completion_tokens', 'output_tokens'],
  reasoning: ['completion_tokens_details.reasoning_tokens', 'output_tokens_details.reasoning_tokens', 'reasoning_tokens'],
  total: ['total_tokens'],
  inputHoldsCache: true,
  outputHoldsReasoning: true,
  inputKinds: ['prompt_tokens_details', 'input_tokens_details'],
  outputKinds: ['completion_tokens_details', 'output_tokens_details'],
}

const openaiReply = {
  errors: ['error'],
  failed: ['error'],
  tools: [],
  model: ['model'],
  id: ['id'],
  finish: ['choices.*.finish_reason'],
  created: ['created'],
  sequence: [],
  sign: 'kens"',
  merge: 'last',
  last: [],
  ending: { types: [], reasons: ['choices.*.finish_reason'], arrays: false },
  counts: openaiCounts,
  served: openaiServed,
  request: null,
} as const

export const chatUsage: UsageRules = {
  ...openaiReply,
  name: 'chat',
  usage: ['x_groq.usage', 'usage'],
  request: { field: 'stream_options', flag: 'include_usage', emptyList: 'choices' },
}

export const responsesUsage: UsageRules = {
  ...openaiReply,
  name: 'responses',
  usage: ['usage', 'response.usage'],
  served: responsesServed,
  tools: ['tool_usage.image_gen', 'response.tool_usage.image_gen'],
  model: ['model', 'response.model'],
  id: ['id', 'response.id'],
  finish: ['choices.*.finish_reason', 'status', 'response.status'],
  created: ['response.created_at'],
  sequence: ['sequence_number'],
  errors: ['error', 'response.error'],
  failed: ['error', 'response.failed'],
  last: ['response.completed', 'response.incomplete', 'response.failed'],
}

export const imagesUsage: UsageRules = {
  ...openaiReply,
  name: 'images',
  usage: ['usage'],
  served: imagesServed,
  merge: 'sum',
  ending: { types: ['image_generation.completed', 'image_edit.completed'], reasons: [], arrays: false },
  counts: { ...openaiCounts, outputKind: 'image' },
}

export const embeddingsUsage: UsageRules = { ...openaiReply, name: 'embeddings', usage: ['usage'], ending: null }

export const messagesUsage: UsageRules = {
  name: 'messages',
  usage: ['message.usage', 'usage'],
  tools: [],
  model: ['message.model', 'model'],
  id: ['message.id', 'id'],
  finish: ['message.stop_reason', 'delta.stop_reason', 'stop_reason'],
  created: [],
  sequence: [],
  errors: ['error'],
  failed: ['error'],
  sign: 'kens"',
  merge: 'last',
  last: ['message_stop'],
  served: messagesServed,
  ending: { types: [], reasons: [], arrays: false },
  request: null,
  counts: {
    ...none,
    input: ['input_tokens'],
    cacheRead: ['cache_read_input_tokens'],
    cacheWrite: ['cache_creation_input_tokens'],
    cacheWrite5m: ['cache_creation.ephemeral_5m_input_tokens'],
    cacheWrite1h: ['cache_creation.ephemeral_1h_input_tokens'],
    output: ['output_tokens'],
    reasoning: ['output_tokens_details.thinking_tokens'],
    inputHoldsCache: false,
    outputHoldsReasoning: true,
    // The top level leaves compaction out; an `advisor_message` is another model's bill, and a fallback is in the top level.
    added: { list: 'iterations', type: 'compaction' },
  },
}

export const generateContentUsage: UsageRules = {
  name: 'generate_content',
  usage: ['usageMetadata'],
  tools: [],
  model: ['modelVersion'],
  id: ['responseId'],
  finish: ['candidates.*.finishReason'],
  created: [],
  sequence: [],
  errors: ['error'],
  failed: [],
  served: generateContentServed,
  sign: 'kenCount"',
  merge: 'last',
  last: [],
  // A prompt that is blocked has no candidate.
  ending: { types: [], reasons: ['candidates.*.finishReason', 'promptFeedback.blockReason'], arrays: true },
  request: null,
  counts: {
    ...none,
    input: ['promptTokenCount'],
    cacheRead: ['cachedContentTokenCount'],
    toolInput: ['toolUsePromptTokenCount'],
    output: ['candidatesTokenCount'],
    reasoning: ['thoughtsTokenCount'],
    total: ['totalTokenCount'],
    inputHoldsCache: true,
    outputHoldsReasoning: false,
    inputKinds: ['promptTokensDetails'],
    outputKinds: ['candidatesTokensDetails'],
  },
}
