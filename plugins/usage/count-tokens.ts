import { totalTokens, usageBy } from '../core/call/measures.js'
import type { ModalityTokens, TokenUsage } from '../core/types.js'
import { kindsIn, tellCached } from './count-kinds.js'
import { textIn } from './findings.js'
import type { CountPlaces } from './plan.js'
import { isObject, type JsonObject } from '../core/body/json-object.js'
import { UsageObject } from './usage-object.js'

/** The tokens of a usage object. */
export interface Counted {
  readonly usage: TokenUsage
  readonly modalities: readonly ModalityTokens[]
  /** True if its numbers contradict each other, or are no numbers. */
  readonly inconsistent: boolean
}

/** The numbers of a usage object, before they are sorted into leaves. */
interface Reported {
  readonly numbers: Numbers
  readonly total: number | null
  readonly kinds: readonly ModalityTokens[]
  /** True if it splits its output by kind of content. */
  readonly splitsOutput: boolean
  /** True if a field held something that is no count of tokens. */
  readonly odd: boolean
}

type Numbers = Readonly<Record<
  | 'input' | 'cacheRead' | 'cacheWrite' | 'cacheWrite5m' | 'cacheWrite1h' | 'toolInput' | 'output' | 'reasoning', number | null>>

/** The tokens of a usage object, null if it reports none: absent, null and zero are three different things. `model`: which replied. */
export function countTokens (object: JsonObject, counts: CountPlaces, model: string | null = null): Counted | null {
  const reported = tell(object, counts)
  if (reported === null) return null
  const own = countedOf(reported, counts, model)
  return counts.added === null ? own : leftOut(object, counts, counts.added.type).reduce<Counted>(addCounted, own)
}

/** The numbers of a usage object by meaning; null if it reports no tokens. */
function tell (object: JsonObject, counts: CountPlaces): Reported | null {
  const usage = new UsageObject(object)
  const outside = usage.number(counts.outsideTotal)
  const numbers = {
    input: usage.number(counts.input),
    cacheRead: usage.number(counts.cacheRead),
    cacheWrite: usage.number(counts.cacheWrite),
    cacheWrite5m: usage.number(counts.cacheWrite5m),
    cacheWrite1h: usage.number(counts.cacheWrite1h),
    toolInput: usage.number(counts.toolInput) ?? outside,
    output: usage.number(counts.output),
    reasoning: usage.number(counts.reasoning),
  }
  if (usage.seen === 0) return null
  const total = totalOf(usage.number(counts.total), numbers, outside ?? 0)
  const outputKinds = usage.container(counts.outputKinds)
  const inputs = kindsIn('input', usage.container(counts.inputKinds), counts.numberedKinds)
  const cached = usage.container(counts.cachedKinds)
  if (cached !== null && numbers.cacheRead !== null) tellCached(inputs, cached, counts.numberedKinds)
  const kinds = [...inputs, ...kindsIn('output', outputKinds, counts.numberedKinds)]
  return { numbers, total, kinds, splitsOutput: outputKinds !== null, odd: usage.odd }
}

/** What is told outside of the total belongs to it, and so does the reasoning then: unless the total is more than input and output. */
function totalOf (stated: number | null, { input, output, reasoning }: Numbers, outside: number): number | null {
  const bare = (input ?? 0) + (output ?? 0)
  return outside > 0 && (stated ?? bare) === bare ? bare + outside + (reasoning ?? 0) : stated
}

function countedOf ({ numbers, total, kinds, splitsOutput, odd }: Reported, counts: CountPlaces, model: string | null): Counted {
  const { usage, clamped } = leavesOf(numbers, total, counts, model)
  const inconsistent = odd || clamped || (total !== null && total !== totalTokens(usage))
  const tokens = usage.output + usage.reasoning
  if (splitsOutput || counts.outputKind === null || tokens === 0) return { usage, modalities: kinds, inconsistent }
  return { usage, modalities: [...kinds, { direction: 'output', modality: counts.outputKind, tokens }], inconsistent }
}

function leavesOf (
  numbers: Numbers, total: number | null, counts: CountPlaces, model: string | null
): { usage: TokenUsage, clamped: boolean } {
  const cacheRead = numbers.cacheRead ?? 0
  const toolInput = numbers.toolInput ?? 0
  const writes = splitWrites(numbers)
  const cached = cacheRead + writes.total
  const prompt = (numbers.input ?? 0) + (counts.inputHoldsCache ? 0 : cached)
  const visible = prompt + toolInput + (numbers.output ?? 0)
  const beyond = Math.max(0, (total ?? 0) - visible)
  // If it is as many as came from a cache, it is those, counted twice.
  const isHidden = numbers.reasoning === null && beyond !== cached && model !== null && counts.reasoningInTotal?.test(model) === true
  const hidden = isHidden ? beyond : 0
  const reasoning = numbers.reasoning ?? hidden
  // The total shows whether the output includes reasoning; if it fits neither way, the protocol's rule applies.
  const isWithin = total === visible || (counts.outputHoldsReasoning && total !== visible + reasoning)
  const input = prompt - cached
  const output = (numbers.output ?? 0) - (isWithin ? reasoning : 0)
  const usage = {
    input: Math.max(0, input),
    cache_read: cacheRead,
    cache_write_5m: writes.of5m,
    cache_write_1h: writes.of1h,
    cache_write: writes.other,
    tool_input: toolInput,
    output: Math.max(0, output),
    reasoning,
  }
  return { usage, clamped: input < 0 || output < 0 || writes.clamped || hidden > 0 }
}

/** Cache writes by lifetime. A stream reports the lifetimes only at its start; a smaller total at its end is split in the same ratio. */
function splitWrites (numbers: Numbers): { of5m: number, of1h: number, other: number, total: number, clamped: boolean } {
  const of5m = numbers.cacheWrite5m ?? 0
  const of1h = numbers.cacheWrite1h ?? 0
  const split = of5m + of1h
  const total = numbers.cacheWrite ?? split
  if (total >= split) return { of5m, of1h, other: total - split, total, clamped: false }
  const share = Math.round(of5m * total / split)
  return { of5m: share, of1h: total - share, other: 0, total, clamped: true }
}

/** Parts of a type that the object lists but does not include in its own numbers, each with its model. */
export function leftOut (object: JsonObject, counts: CountPlaces, type: string | undefined): Array<Counted & { model: string }> {
  const list = counts.added === null ? null : object[counts.added.list]
  if (!Array.isArray(list)) return []
  return list.flatMap((entry: unknown) => {
    if (!isObject(entry) || entry['type'] !== type) return []
    const counted = countTokens(entry, { ...counts, added: null })
    return counted === null ? [] : { ...counted, model: textIn([entry['model']], [0]) ?? '' }
  })
}

export function addCounted (one: Counted, other: Counted): Counted {
  return {
    usage: usageBy((leaf) => one.usage[leaf] + other.usage[leaf]),
    modalities: [...one.modalities, ...other.modalities],
    inconsistent: one.inconsistent || other.inconsistent,
  }
}
