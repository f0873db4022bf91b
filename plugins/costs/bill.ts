/** The bill of one request: what its reply reported, times the rates of its model's price row. */
import type { CostPart, Served, BilledUnit } from '../core/money/cost.js'
import { leaves, leafTokens, tokensOf, totalTokens, usageBy } from '../core/call/measures.js'
import type { ModalityTokens, TokenUsage } from '../core/types.js'
import { add, decimalText, isSame, one, readDecimal, times, timesCount, zero, type Decimal } from '../core/money/decimal.js'
import { kinds, type PriceRow, type Rates, type Sheet, type Step } from './price-row.js'

/** What is charged for. */
export interface Bill {
  readonly usage: TokenUsage | null
  readonly modalities: readonly ModalityTokens[] | null
  readonly served: Served | null
  /** Price factor of the upstream, relative to the list. */
  readonly factor: Decimal
}

const units: readonly BilledUnit[] = ['search', 'file_search', 'container', 'second']

/** Null for a request that reported nothing to charge. `row`: null if the list has none for its model. */
export function priceBill (bill: Bill, row: PriceRow | null): Priced | null {
  const lines = linesOf(bill, row)
  return lines.isEmpty ? null : lines
}

/** The same, but without lines instead of null. */
export function linesOf (bill: Bill, row: PriceRow | null): Priced {
  const lines = new Priced()
  const { usage, modalities, served, factor } = bill
  const tools = served?.tools ?? null
  const own = usage === null || tools === null || tools.model !== undefined ? usage : usageBy((leaf) => usage[leaf] - tools.usage[leaf])
  const ownKinds = tools === null ? modalities : modalities?.filter((kind) => !tools.modalities.includes(kind)) ?? null
  if (own !== null) {
    const { sheet, factor: onSheet } = row === null ? noPrices : situationOf(row, served)
    addTokens(lines, { prefix: '', usage: own, modalities: ownKinds, sheet, factor: times(onSheet, factor) })
  }
  if (tools !== null) addTokens(lines, { prefix: 'tools.', ...tools, sheet: row?.tools ?? noPrices.sheet, factor })
  addUnits(lines, bill, row)
  const request = lines.isEmpty ? undefined : row?.each.get('request')
  if (request !== undefined) lines.add('request', 1, request, factor)
  return lines
}

interface Line {
  readonly name: string
  readonly count: number
  /** Null if there is no rate for it. */
  readonly cost: Decimal | null
}

/** The lines of a bill and their sum. */
class Priced {
  readonly #lines: Line[] = []
  #total: Decimal | null = null
  #unpriced = false

  /** Null if no part has a price. */
  get total (): Decimal | null { return this.#total }
  get unpriced (): boolean { return this.#unpriced }
  get isEmpty (): boolean { return this.#lines.length === 0 }

  /** Made on demand: most readers of a bill need only its sum. */
  get parts (): CostPart[] {
    return this.#lines.map(({ name, count, cost }) => ({ name, units: count, amount: cost === null ? null : decimalText(cost) }))
  }

  add (name: string, count: number, rate: Decimal | undefined, factor: Decimal): void {
    const cost = rate === undefined ? null : times(priced(rate, count), factor)
    this.#lines.push({ name, count, cost })
    if (cost === null) this.#unpriced = true
    else this.#total = this.#total === null ? cost : add(this.#total, cost)
  }
}

/** Seconds may be a fraction of any number of digits, as the reply states them. */
function priced (rate: Decimal, count: number): Decimal {
  return Number.isInteger(count) ? timesCount(rate, count) : times(rate, readDecimal(String(count)) ?? zero)
}

/** The rates that apply to a request, and the factor on them. */
interface Situation {
  readonly sheet: Sheet
  readonly factor: Decimal
}

const noPrices: Situation = { sheet: { rates: new Map(), above: [] }, factor: one }

/** No prices if there are none for how the request was served. */
function situationOf ({ sheet, tiers, speeds, regions }: PriceRow, served: Served | null): Situation {
  if (served === null || isCommonlyServed(served)) return { sheet, factor: one }
  let chosen: Sheet | null = null
  let factor = one
  for (const [name, variants] of [[served.tier, tiers], [served.speed, speeds]] as const) {
    if (isCommon(name)) continue
    const variant = variants.get(name)
    // Two price lists at once cannot be combined.
    if (variant === undefined || ('sheet' in variant && chosen !== null)) return noPrices
    if ('sheet' in variant) chosen = variant.sheet
    else factor = times(factor, variant.factor)
  }
  if (isCommon(served.region)) return { sheet: chosen ?? sheet, factor }
  const regional = regions.get(served.region)
  return regional === undefined ? noPrices : { sheet: chosen ?? sheet, factor: times(factor, regional) }
}

/** Whether the common prices apply. */
export function isCommonlyServed ({ tier, speed, region }: Served): boolean {
  return isCommon(tier) && isCommon(speed) && isCommon(region)
}

function isCommon (name: string | null): name is null | 'standard' {
  return name === null || name === 'standard'
}

/** The rates for an input of this size. */
export function ratesFor ({ rates, above }: Sheet, inputTokens: number): Rates {
  return stepFor(above, inputTokens)?.rates ?? rates
}

/** The step that applies to an input of this size, if any. */
export function stepFor<S extends Omit<Step, 'rates'>> (above: readonly S[], inputTokens: number): S | undefined {
  return above.findLast((step) => inputTokens > step.inputTokens || (step.inclusive && inputTokens === step.inputTokens))
}

/** Tokens that are charged at the rates of one sheet. */
interface SheetTokens extends Situation {
  /** Of the names of their lines. */
  readonly prefix: string
  readonly usage: TokenUsage
  readonly modalities: readonly ModalityTokens[] | null
}

function addTokens (lines: Priced, charged: SheetTokens): void {
  const { prefix, usage, sheet, factor } = charged
  const rates = ratesFor(sheet, tokensOf(usage, 'input'))
  const tokens = leafTokens(usage)
  let at = 0
  for (const { type } of leaves) {
    const count = Number(tokens[at++])
    if (count === 0) continue
    const left = type === 'input' || type === 'cache_read' || type === 'output' ? addKinds(lines, charged, type, rates) : count
    if (left > 0) lines.add(prefix + type, left, rates.get(type), factor)
  }
}

type LeafOfKinds = 'input' | 'cache_read' | 'output'

/** Charges kinds of content that have rates of their own; returns the remaining tokens of the leaf. */
function addKinds (lines: Priced, { prefix, usage, modalities, factor }: SheetTokens, type: LeafOfKinds, rates: Rates): number {
  let left = usage[type]
  if (modalities === null) return left
  for (const kind of kinds) {
    const name = `${type}_${kind}`
    const rate = rates.get(name)
    if (rate === undefined) continue
    const count = Math.min(tokensOfKind(modalities, type, kind), left)
    if (count <= 0) continue
    const isSure = isSame(rate, rates.get(type)) || isKnown(modalities, type, kind, usage)
    lines.add(prefix + name, count, isSure ? rate : undefined, factor)
    left -= count
  }
  return left
}

/** At most, where the reply does not tell how many of them came from a cache. */
function tokensOfKind (modalities: readonly ModalityTokens[], type: LeafOfKinds, kind: string): number {
  const isOf = type === 'output' ? type : 'input'
  return modalities.reduce((sum, { direction, modality, tokens, cached }) => {
    if (direction !== isOf || modality !== kind) return sum
    return sum + (type === 'cache_read' ? cached ?? tokens : tokens - (cached ?? 0))
  }, 0)
}

/** False if it is not known how many tokens of a kind came from a cache, or were written to one. */
function isKnown (modalities: readonly ModalityTokens[], type: LeafOfKinds, kind: string, usage: TokenUsage): boolean {
  if (type === 'output') return true
  const { input, tool_input: ofTools, cache_read: read } = usage
  if (type === 'input' && tokensOf(usage, 'input') > input + ofTools + read) return false
  const isUntold = ({ direction, modality, cached }: ModalityTokens): boolean =>
    direction === 'input' && modality === kind && cached === undefined
  return read === 0 || !modalities.some(isUntold)
}

function addUnits (lines: Priced, { usage, served, factor }: Bill, row: PriceRow | null): void {
  if (served === null) return
  const { counts } = served
  for (const unit of units) {
    const count = counts[unit] ?? 0
    if (count === 0) continue
    const once = unit === 'search' ? row?.each.get('searched') : undefined
    if (once === undefined) lines.add(unit, count, row?.each.get(unit), factor)
    else lines.add('searched', 1, once, factor)
  }
  // If tokens were reported, images are among them. Some servers report zeros instead of leaving tokens out.
  const images = usage === null || totalTokens(usage) === 0 ? counts.image ?? 0 : 0
  if (images > 0) lines.add('image', images, row?.each.get('image'), factor)
}
