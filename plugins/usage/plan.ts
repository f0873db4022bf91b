import type { UsageCounts, UsageRules } from '../protocols/usage-rules.js'
import type { BilledUnit } from '../core/money/cost.js'
import type { Place } from './usage-object.js'
import { compileSearch, type SearchNode } from './search-tree.js'

/** `UsageCounts` with its paths split, once. */
export type CountPlaces = {
  readonly [Name in keyof UsageCounts]: Name extends 'numberedKinds' ? UsageCounts[Name]
    : UsageCounts[Name] extends readonly string[] ? readonly Place[] : UsageCounts[Name]
}

/** The usage rules of a protocol, compiled for reading replies. */
export interface Plan {
  readonly rules: UsageRules
  readonly counts: CountPlaces
  /** The same for what tools used: that is no picture unless it says so. */
  readonly toolCounts: CountPlaces
  readonly search: SearchNode
  /** An event of a stream that has none of these texts is not read, unless it is among the first or the last. */
  readonly signs: readonly string[]
  /** Slots of the scanner's findings, by meaning. */
  readonly slots: {
    readonly usage: readonly number[]
    readonly tools: readonly number[]
    readonly drawnByTools: readonly number[]
    readonly model: readonly number[]
    readonly id: readonly number[]
    readonly finish: readonly number[]
    readonly errors: readonly number[]
    readonly tier: readonly number[]
    readonly speed: readonly number[]
    readonly region: readonly number[]
    /** By the protocol's rules for counts, each with its paths inside a usage object. */
    readonly counts: ReadonlyArray<{
      readonly unit: BilledUnit
      readonly adds: boolean
      readonly reply: readonly number[]
      readonly once: readonly number[]
      readonly is: string | null
      readonly but: readonly number[]
      readonly butIs: readonly string[]
      readonly sizes: readonly number[]
      readonly inside: ReadonlyArray<readonly string[]>
    }>
    readonly created: readonly number[]
    readonly sequence: readonly number[]
    readonly reasons: readonly number[]
    readonly type: number
    readonly listed: number
  }
}

/** What every event has that tells of an error, wherever it stands in it; the byte at its beginning is rarer than a quote. */
const errorSign = 'rror"'

const plans = new WeakMap<UsageRules, { readonly one: Plan, readonly several: Plan }>()

/** Compiled once for each set of rules. `several`: one of several answers may fail while events of the others still come. */
export function planOf (rules: UsageRules, several = false): Plan {
  let known = plans.get(rules)
  if (known === undefined) {
    const one = compile(rules)
    known = { one, several: rules.errors.some(isInEach) ? { ...one, signs: [...one.signs, errorSign] } : one }
    plans.set(rules, known)
  }
  return several ? known.several : known.one
}

function compile (rules: UsageRules): Plan {
  const paths: string[] = []
  const slotOf = (path: string): number => paths.includes(path) ? paths.indexOf(path) : paths.push(path) - 1
  const slotsOf = (added: readonly string[]): number[] => added.map(slotOf)
  const { served } = rules
  const slots = {
    usage: slotsOf(rules.usage.map(ofAll)),
    tools: slotsOf(rules.tools),
    drawnByTools: slotsOf(rules.drawnByTools),
    model: slotsOf(rules.model),
    id: slotsOf(rules.id),
    finish: slotsOf(rules.finish),
    errors: slotsOf(rules.errors.map(ofAll)),
    tier: slotsOf(served.tier.reply),
    speed: slotsOf(served.speed.reply),
    region: slotsOf(served.region.reply),
    counts: served.counts.map(({ reply, once, but, sizes, usage, ...rule }) => ({
      ...rule,
      reply: slotsOf(reply),
      once: slotsOf(once),
      but: slotsOf(but?.reply ?? []),
      butIs: but?.is ?? [],
      sizes: slotsOf(sizes),
      inside: usage.map((path) => path.split('.')),
    })),
    created: slotsOf(rules.created),
    sequence: slotsOf(rules.sequence),
    reasons: slotsOf(rules.ending?.reasons ?? []),
    type: paths.push('type') - 1,
    listed: rules.request === null ? -1 : paths.push(`${rules.request.emptyList}.#`) - 1,
  }
  const counts = countPlaces(rules.counts)
  return { rules, counts, toolCounts: { ...counts, outputKind: null }, search: compileSearch(paths), signs: [rules.sign], slots }
}

/** What one choice has must not be hidden by the null of another. */
function ofAll (path: string): string {
  return isInEach(path) ? `${path}[]` : path
}

function isInEach (path: string): boolean {
  return path.includes('*')
}

function countPlaces (counts: UsageCounts): CountPlaces {
  return {
    ...counts,
    input: apart(counts.input),
    cacheRead: apart(counts.cacheRead),
    cacheWrite: apart(counts.cacheWrite),
    cacheWrite5m: apart(counts.cacheWrite5m),
    cacheWrite1h: apart(counts.cacheWrite1h),
    toolInput: apart(counts.toolInput),
    output: apart(counts.output),
    reasoning: apart(counts.reasoning),
    total: apart(counts.total),
    outsideTotal: apart(counts.outsideTotal),
    inputKinds: apart(counts.inputKinds),
    cachedKinds: apart(counts.cachedKinds),
    outputKinds: apart(counts.outputKinds),
  }
}

function apart (paths: readonly string[]): Place[] {
  return paths.map((path) => {
    const [first = path, second = null, third = null] = path.split('.')
    return { first, second, third }
  })
}
