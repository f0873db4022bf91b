/** How many tokens a request may use, estimated before it is sent. Never counted as usage: it is held, and replaced by real usage. */
import { plainText, valueAt } from '../core/body/json-object.js'
import type { ModelCall } from '../core/call/model-call.js'

export interface HoldSizes {
  readonly maxInputTokens: number
  /** Most output of a model that is not in the list. */
  readonly otherOutput: number
  readonly outputByModel: ReadonlyMap<string, number>
}

/** A rule of thumb for text. Images take far more bytes per token, so the estimate also has an upper bound. */
const bytesPerToken = 4
/** No provider gives more answers to one request. */
const maxChoices = 128

/** Tokens of the request itself, by its size. */
export function inputEstimate (llm: ModelCall, contentLength: string | undefined, { maxInputTokens }: HoldSizes): number {
  const bytes = llm.body.bytes?.length ?? Number(contentLength ?? 0)
  return Math.min(Math.ceil(bytes / bytesPerToken), maxInputTokens)
}

/**
 * The most output tokens of the reply: what is asked for, at most what the model (or a fallback model) can produce; or that maximum if
 * nothing is asked for.
 */
export function outputBound (llm: ModelCall, sizes: HoldSizes): number {
  const { output } = llm.endpoint
  if (output === null) return 0
  const most = llm.body.substitutes.reduce((largest, model) => Math.max(largest, mostOf(model, sizes)), mostOf(llm.model, sizes))
  // Some servers take -1 for no bound.
  const asked = largestCount(llm.body.json, output.max, Infinity) ?? most
  const choices = largestCount(llm.body.json, output.choices, 0) ?? 1
  return Math.min(asked, most) * Math.min(choices, maxChoices)
}

function mostOf (model: string | null, { otherOutput, outputByModel }: HoldSizes): number {
  return outputByModel.get(model ?? '') ?? otherOutput
}

/**
 * True if the work may continue in the background after the reply has ended or the caller has left. Another request tells its usage. Some
 * servers take a text or a number for true.
 */
export function goesOn ({ endpoint, body: { json } }: ModelCall): boolean {
  const path = endpoint.output?.goesOn
  return path !== undefined && Boolean(valueAt(json, path))
}

/** Estimated tokens of what was passed on of a reply that did not report its usage. */
export function relayedEstimate ({ upstreamReply: { bytes: replyBytes }, stream, endpoint }: ModelCall): number {
  return Math.ceil(replyBytes / (stream ? endpoint.streamBytesPerToken : bytesPerToken))
}

/**
 * The largest over all spellings: upstreams differ in which one counts, so a caller could have one held and another one served. JSON of
 * protocol buffers may have a number as a text. Infinity for a number that none could mean: a server may take it for its own maximum.
 * `negative`: what one below 0 stands for.
 */
function largestCount (json: unknown, paths: ReadonlyArray<readonly string[]>, negative: number): number | null {
  let largest: number | null = null
  for (const path of paths) {
    const told = Number(plainText(valueAt(json, path)))
    const value = told < 0 ? negative : told
    if (value > (largest ?? 0)) largest = Number.isSafeInteger(value) ? value : Infinity
  }
  return largest
}
