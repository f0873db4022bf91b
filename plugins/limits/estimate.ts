/** How much a request may cost, told before it is sent. Never counted as usage: it is held, and replaced by what was used. */
import { valueAt } from '../core/body/json-object.js'
import type { ModelCall } from '../core/call/model-call.js'

export interface HoldSizes {
  readonly maxInputTokens: number
  /** Most output of a model that is not in the list. */
  readonly otherOutput: number
  readonly outputByModel: ReadonlyMap<string, number>
}

/** A rule of thumb for text; images in a body are far longer, so that the estimate has a bound of its own. */
const bytesPerToken = 4
/** A stream wraps a token, or a few, into an event of about this size. */
const streamedBytesPerToken = 128
/** Providers make no more answers to one request. */
const maxChoices = 128

/** Tokens of the request itself, by its size. */
export function inputEstimate (llm: ModelCall, contentLength: string | undefined, { maxInputTokens }: HoldSizes): number {
  const bytes = llm.body.bytes?.length ?? Number(contentLength ?? 0)
  return Math.min(Math.ceil(bytes / bytesPerToken), maxInputTokens)
}

/**
 * The most that the reply can have: what is asked for, within what the model can make, or one that may take its place; what they can make
 * where nothing is.
 */
export function outputBound (llm: ModelCall, sizes: HoldSizes): number {
  const { output } = llm.endpoint
  if (output === null) return 0
  const most = llm.body.substitutes.reduce((largest, model) => Math.max(largest, mostOf(model, sizes)), mostOf(llm.model, sizes))
  const asked = largestCount(llm.body.json, output.max) ?? most
  const choices = largestCount(llm.body.json, output.choices) ?? 1
  return Math.min(asked, most) * Math.min(choices, maxChoices)
}

function mostOf (model: string | null, { otherOutput, outputByModel }: HoldSizes): number {
  return outputByModel.get(model ?? '') ?? otherOutput
}

/**
 * True where the work goes on when the reply has ended, or its caller has left. What it uses is told later, in replies that are not
 * metered.
 */
export function goesOn ({ endpoint, body: { json } }: ModelCall): boolean {
  const path = endpoint.output?.goesOn
  return path !== undefined && valueAt(json, path) === true
}

/** What has come of a reply whose usage was not told. */
export function relayedEstimate ({ upstreamReply: { bytes: replyBytes }, stream }: ModelCall): number {
  return Math.ceil(replyBytes / (stream ? streamedBytesPerToken : bytesPerToken))
}

/** Of several spellings, which upstreams choose from as they like: a caller could have one held and another one served. */
function largestCount (json: unknown, paths: ReadonlyArray<readonly string[]>): number | null {
  let largest: number | null = null
  for (const path of paths) {
    const value = valueAt(json, path)
    if (typeof value === 'number' && Number.isSafeInteger(value) && value > (largest ?? 0)) largest = value
  }
  return largest
}
