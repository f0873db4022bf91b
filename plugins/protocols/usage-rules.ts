/**
 * How the replies of each protocol report their token usage, as data for the readers in `plugins/usage/`. Evidence for each line: the
 * providers' replies in test/fixtures. A path is a list of object keys joined by dots; `*` is every element of an array, `#` the number of
 * its elements.
 */

import type { ServedRules } from './served-rules.js'

/** Where the numbers are inside a usage object. Of several paths the first with a number counts. */
export interface UsageCounts {
  readonly input: readonly string[]
  readonly cacheRead: readonly string[]
  /** All tokens written to a cache; those beyond the two lifetimes below have an unknown lifetime. */
  readonly cacheWrite: readonly string[]
  readonly cacheWrite5m: readonly string[]
  readonly cacheWrite1h: readonly string[]
  readonly toolInput: readonly string[]
  readonly output: readonly string[]
  readonly reasoning: readonly string[]
  readonly total: readonly string[]
  /** What a model read for its searches. Where this is told, a `total` of input and output alone leaves out both it and the reasoning. */
  readonly outsideTotal: readonly string[]
  /** True if `input` includes the cached tokens, so that they must be subtracted. */
  readonly inputHoldsCache: boolean
  /** True if `output` includes the reasoning. The reported total takes precedence if it fits only the other reading. */
  readonly outputHoldsReasoning: boolean
  /**
   * Names of models that report reasoning only in the total; null for none. If any other model's total exceeds its parts, it is
   * inconsistent.
   */
  readonly reasoningInTotal: RegExp | null
  /** Entries of a list inside the usage object that its own numbers leave out, and those of models that tools of the reply used. */
  readonly added: { readonly list: string, readonly type: string, readonly tools: string } | null
  /** The split by kind of content: an object of `<kind>_tokens`, or a list of `{modality, tokenCount}`. */
  readonly inputKinds: readonly string[]
  /** The same of what came from a cache. */
  readonly cachedKinds: readonly string[]
  readonly outputKinds: readonly string[]
  /** The values of `modality` by their numbers, which a caller may ask for instead. */
  readonly numberedKinds: readonly string[]
  /** The kind of all output of a reply without a split. */
  readonly outputKind: string | null
}

/** What a caller must send to get usage in a stream, and what that adds to the stream. */
export interface UsageRequest {
  /** A field of the body, an object, and its flag. */
  readonly field: string
  readonly flag: string
  /** The list that is empty in the added event. */
  readonly emptyList: string
}

/** How a complete stream ends. One that ends without it was cut, however cleanly it ends. */
interface StreamEnding {
  /** Values of an event's `type`, besides those after which no usage follows. */
  readonly types: readonly string[]
  /** Paths of a text that is in the last event with content, such as why a model stopped. */
  readonly reasons: readonly string[]
  /** A stream may be an array of documents, which ends in the same way. */
  readonly arrays: boolean
}

/** What a stream has before its first content. */
export interface StreamHead {
  /** Values of an event's `type` that precede content. */
  readonly preamble: readonly string[]
  /** For events without a `type`: true if they have no content yet. */
  readonly isEmpty: (document: Readonly<Record<string, unknown>>) => boolean
}

export interface UsageRules {
  /** Paths of usage objects in a reply, an event or an array element. If there are several, a later path wins over an earlier one. */
  readonly usage: readonly string[]
  /** Paths of the usage of models that tools of the reply used: not in its own usage, but on the same bill. All of them add up. */
  readonly tools: readonly string[]
  /** The same for what the reply's own usage may include, and then reports as output of images. */
  readonly drawnByTools: readonly string[]
  readonly model: readonly string[]
  readonly id: readonly string[]
  readonly finish: readonly string[]
  /** Values of `finish` with which usage is not final. */
  readonly unfinished: readonly string[]
  /** Paths of the reply's creation time, and of an event's number: for an error event of ours that ends a stream. */
  readonly created: readonly string[]
  readonly sequence: readonly string[]
  /** Paths of what a reply or an event has if it reports a failure after its status was success. */
  readonly errors: readonly string[]
  /** Values of a reply's or an event's `type` that mean the same. */
  readonly failed: readonly string[]
  /**
   * Bytes that every usage object contains. An event without them is not read, so they begin with a byte that is rare in events: the search
   * stops at each.
   */
  readonly sign: string
  /** How usage objects of several events are combined: per field the last that is not null, or the sum of all. */
  readonly merge: 'last' | 'sum'
  /** Values of an event's `type` after which no usage follows. */
  readonly last: readonly string[]
  /**
   * How a stream ends, besides `[DONE]`, a failure and the events of `last`. Null if the protocol promises nothing. Sources: the streaming
   * references of each API; compatible servers leave out `[DONE]` and never the reason.
   */
  readonly ending: StreamEnding | null
  readonly head: StreamHead
  readonly counts: UsageCounts
  readonly served: ServedRules
  readonly request: UsageRequest | null
}

/** For what a protocol does not report. */
export const noCounts = {
  cacheRead: [],
  cacheWrite: [],
  cacheWrite5m: [],
  cacheWrite1h: [],
  toolInput: [],
  reasoning: [],
  total: [],
  outsideTotal: [],
  reasoningInTotal: null,
  added: null,
  inputKinds: [],
  cachedKinds: [],
  outputKinds: [],
  numberedKinds: [],
  outputKind: null,
} as const

/** For what is the same in most replies, or not in them at all; the first event of a stream has content. */
export const plainReply = {
  tools: [],
  drawnByTools: [],
  unfinished: [],
  created: [],
  sequence: [],
  errors: ['error'],
  failed: ['error'],
  merge: 'last',
  last: [],
  head: { preamble: [], isEmpty: () => false },
  request: null,
} as const
