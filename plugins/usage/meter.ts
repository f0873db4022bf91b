import { ReplyUsage } from '../core/call/call-parts.js'
import type { ModelCall } from '../core/call/model-call.js'
import type { Served } from '../core/money/cost.js'
import type { ModalityTokens, StreamFacts, UsageMissing } from '../core/types.js'
import { addCounted, countTokens, leftOut, type Counted } from './count-tokens.js'
import { numberIn, textIn } from './findings.js'
import { nothingOutside, takeOutside } from './outside.js'
import type { Plan } from './plan.js'
import { servedOf, type ReadHeader } from './served.js'
import { isObject, type JsonObject } from '../core/body/json-object.js'
import { tellsFailure } from '../core/upstream/tells-failure.js'
import { overlay } from './usage-object.js'

/** Reasons for which a reply was not read to its end. */
const cutShort: ReadonlySet<UsageMissing> = new Set(['client_abort', 'upstream_abort', 'too_large'])

/** Called with the usage of an earlier request, which the reply to a later one repeats. */
export type Told = (llm: ModelCall, usage: ReplyUsage) => void

/** Gathers what the documents of one reply report: its only one, each event of a stream, or each element of an array. */
export class Meter {
  /** True if the newest document held usage. */
  hasUsage = false
  /** True if the newest document was the one that the gateway asked for on the caller's behalf: usage and no choice. */
  isExtra = false
  /** True once a document said that it is the last one to hold usage. */
  complete = false
  finishReason: string | null = null
  /** True once a document reported that the reply failed. */
  failed = false
  /** True if the newest document with content, or one after it, said that the stream is whole. */
  ended = false

  readonly #plan: Plan
  #latest: JsonObject = {}
  #sum: Counted | null = null
  #tools: Counted | null = null
  #drawn: Counted | null = null
  #outside = nothingOutside()
  #hasChoices = false
  #model: string | null = null
  #id: string | null = null
  #createdAt: number | null = null
  #sequence: number | null = null

  constructor (plan: Plan) {
    this.#plan = plan
  }

  /** Takes the findings of one document. */
  take (found: readonly unknown[]): void {
    const { slots, rules } = this.#plan
    this.#model = textIn(found, slots.model) ?? this.#model
    this.#id = textIn(found, slots.id) ?? this.#id
    this.finishReason = textIn(found, slots.finish) ?? this.finishReason
    takeOutside(this.#outside, found, this.#plan)
    const type = found[slots.type]
    if (typeof type === 'string') this.complete ||= rules.last.includes(type)
    const fails = this.fails(found)
    this.failed ||= fails
    // Before `add` merges earlier counts into it.
    this.isExtra = this.#lacksChoice(found) && !fails && slots.usage.some((slot) => this.#tells(found[slot]))
    this.hasUsage = false
    for (const slot of slots.usage) {
      if (found[slot] === undefined) continue
      for (const usage of [found[slot]].flat()) if (isObject(usage)) this.#add(usage)
    }
    this.#tools = this.#withTools(this.#tools, this.#toolsIn(found, slots.tools))
    this.#drawn = this.#withTools(this.#drawn, this.#toolsIn(found, slots.drawnByTools))
    this.#createdAt = numberIn(found, slots.created) ?? this.#createdAt
    const sequence = numberIn(found, slots.sequence)
    // A skipped event may be read after a later one.
    if (sequence !== null && sequence > (this.#sequence ?? -1)) this.#sequence = sequence
    this.#takeEnding(found, type, fails)
  }

  /** True if the findings report a failure. `open`: slot of a value that is still being read. */
  fails (found: readonly unknown[], open = -1): boolean {
    const { slots, rules } = this.#plan
    const type = found[slots.type]
    if (typeof type === 'string' && rules.failed.includes(type)) return true
    for (const slot of slots.errors) {
      if (slot === open || (found[slot] !== undefined && [found[slot]].flat().some(tellsFailure))) return true
    }
    return false
  }

  /** True if the newest document has an empty list of choices; or none at all, if others had choices. */
  #lacksChoice (found: readonly unknown[]): boolean {
    const choices = found[this.#plan.slots.listed]
    this.#hasChoices ||= Number(choices) > 0
    return choices === 0 || (choices === undefined && this.#hasChoices)
  }

  /** What an error event of ours at the end of the stream continues. */
  get streamFacts (): StreamFacts {
    return { id: this.#id, model: this.#model, createdAt: this.#createdAt, sequence: this.#sequence }
  }

  /** If one of several answers has ended, or failed, events of the others may still follow. */
  #takeEnding (found: readonly unknown[], type: unknown, fails: boolean): void {
    const { slots, rules: { ending } } = this.#plan
    const isLast = slots.reasons.some((slot) => tellsReason(found[slot])) || ending?.types.some((last) => last === type) === true
    if (this.complete || fails || isLast) this.ended = true
    else if (Number(found[slots.listed]) > 0 && !this.hasUsage) this.ended = false
  }

  #add (usage: JsonObject): void {
    this.hasUsage = true
    if (this.#plan.rules.merge === 'last') {
      this.#latest = overlay(this.#latest, usage)
      return
    }
    this.#latest = usage
    const counted = countTokens(usage, this.#plan.counts)
    if (counted !== null) this.#sum = this.#sum === null ? counted : addCounted(this.#sum, counted)
  }

  #tells (usage: unknown): boolean {
    return isObject(usage) && countTokens(usage, this.#plan.counts) !== null
  }

  /** The sum of what tools used in one document; null for nothing. */
  #toolsIn (found: readonly unknown[], slots: readonly number[]): Counted | null {
    let sum: Counted | null = null
    for (const slot of slots) {
      for (const usage of [found[slot]].flat()) sum = sumOf(sum, isObject(usage) ? countTokens(usage, this.#plan.toolCounts) : null)
    }
    return sum
  }

  /** Adds tools up for replies whose events add up; otherwise the newest report counts. */
  #withTools (before: Counted | null, now: Counted | null): Counted | null {
    return this.#plan.rules.merge === 'sum' ? sumOf(before, now) : now ?? before
  }

  /** What the reply reported of itself, null for nothing. */
  #own (): Counted | null {
    return this.#sum ?? countTokens(this.#latest, this.#plan.counts, this.#model)
  }

  /** What models of tools used beside the reply's own usage; null for nothing. */
  #beside (): Served['tools'] {
    const { counts } = this.#plan
    const [first, ...others] = leftOut(this.#latest, counts, counts.added?.tools)
    return first === undefined ? null : { ...others.reduce<Counted>(addCounted, first), model: first.model }
  }

  /** Writes to `llm` what was read, or why nothing was. If there is `told`, only that is given what was read, and only if it is final. */
  finish (llm: ModelCall, unread: UsageMissing, header: ReadHeader, told: Told | null = null): void {
    // The upstream itself reported that its reply broke off.
    const missing = this.failed && unread === 'no_usage' ? 'upstream_abort' : unread
    const usage = told === null ? llm.usage : new ReplyUsage()
    usage.responseModel = this.#model
    usage.responseId = this.#id
    usage.finishReason = this.finishReason
    usage.replyFailed = this.failed
    // What a server has counted while work goes on in the background is not yet what that will have used.
    const isFinal = (told === null && !llm.body.goesOn) || !this.#plan.rules.unfinished.includes(String(this.finishReason))
    const own = isFinal ? this.#own() : null
    // Pictures are not counted again if the reply's own output has them.
    const used = own?.modalities.some(isImageOutput) === true ? this.#tools : sumOf(this.#tools, this.#drawn)
    const counted = own === null ? null : sumOf(own, used)
    const tools = used ?? this.#beside()
    // Nothing is told of work that goes on until its tokens are.
    if (counted !== null || !llm.body.goesOn) {
      usage.served = servedOf(this.#outside, this.#latest, counted === null ? null : tools, header, this.#plan)
    }
    if (counted === null) {
      if (llm.endpoint.metered === 'yes') usage.missing = missing
      return
    }
    usage.tokens = counted.usage
    usage.partial = !this.complete && cutShort.has(missing)
    // After a reply that was compressed too tightly, the rest is not seen.
    if (usage.partial && missing === 'too_large') usage.missing = missing
    usage.inconsistent = counted.inconsistent
    usage.modalities = counted.modalities.length > 0 ? [...counted.modalities] : null
    told?.(llm, usage)
  }
}

function sumOf (one: Counted | null, other: Counted | null): Counted | null {
  return one === null || other === null ? one ?? other : addCounted(one, other)
}

/** A name, or its number in the provider's enumeration, which callers may ask for. */
function tellsReason (reason: unknown): boolean {
  return typeof reason === 'string' ? reason !== '' : typeof reason === 'number' && reason > 0
}

function isImageOutput ({ direction, modality }: ModalityTokens): boolean {
  return direction === 'output' && modality === 'image'
}
