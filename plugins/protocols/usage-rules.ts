/**
 * How the replies of each protocol tell their token usage, as data for the readers in `plugins/usage/`. Evidence for each
 * line: the replies of the providers in test/fixtures. A path is a list of object keys joined by dots; `*` is every element of an array,
 * `#` the number of its elements.
 */

import type { ServedRules } from './served-rules.js'

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
  /** Names of models that tell reasoning in the total alone; null for none. What any other's total has beyond its parts is a mistake. */
  readonly reasoningInTotal: RegExp | null
  /** Entries of a list inside the usage object that its own numbers leave out. */
  readonly added: { readonly list: string, readonly type: string } | null
  /** The split by kind of content: an object of `<kind>_tokens`, or a list of `{modality, tokenCount}`. */
  readonly inputKinds: readonly string[]
  readonly outputKinds: readonly string[]
  /** The words of `modality` by their numbers, which a caller may ask for in their place. */
  readonly numberedKinds: readonly string[]
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

/** What stands at the head of a stream before its first content. */
export interface StreamHead {
  /** Values of an event's `type` that come before content. */
  readonly preamble: readonly string[]
  /** Events that have no `type`: true where they hold nothing yet. */
  readonly isEmpty: (document: Readonly<Record<string, unknown>>) => boolean
}

export interface UsageRules {
  /** Paths of usage objects in a reply, an event or an array element. Where several stand, a later path wins over an earlier. */
  readonly usage: readonly string[]
  /** Paths of what tools of the reply made with models of their own: not in its usage, and on the same bill. All of them add up. */
  readonly tools: readonly string[]
  /** The same of what the reply's usage may hold, too, and then tells as output of pictures. */
  readonly drawnByTools: readonly string[]
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
  readonly head: StreamHead
  readonly counts: UsageCounts
  readonly served: ServedRules
  readonly request: UsageRequest | null
}

/** For what a protocol does not tell. */
export const noCounts = {
  cacheRead: [],
  cacheWrite: [],
  cacheWrite5m: [],
  cacheWrite1h: [],
  toolInput: [],
  reasoning: [],
  total: [],
  reasoningInTotal: null,
  added: null,
  inputKinds: [],
  outputKinds: [],
  numberedKinds: [],
  outputKind: null,
} as const

/** Of streams whose first event has content. */
export const noHead: StreamHead = { preamble: [], isEmpty: () => false }
