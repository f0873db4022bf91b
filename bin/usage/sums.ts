import { add, decimalText, readDecimal, type Decimal } from '../../plugins/core/decimal.js'
import { leaves } from '../../plugins/core/measures.js'
import type { LedgerRecord } from '../../plugins/state/types.js'
import { UsageError } from '../io.js'
import type { Calendar } from './calendar.js'

type Reader = (record: LedgerRecord, calendar: Calendar) => string | null

/** What usage can be summed by, and where a record says it. */
const readers = new Map(Object.entries<Reader>({
  group: ({ group }) => group,
  key: ({ key }) => key,
  model: ({ model }) => model,
  protocol: ({ protocol }) => protocol,
  day: ({ time }, calendar) => calendar.day(time),
  month: ({ time }, calendar) => calendar.day(time).slice(0, 7),
}))

const labelPrefix = 'label:'

export interface Dimension {
  readonly name: string
  readonly read: Reader
}

/** `key`, `label:team`. Throws UsageError. */
export function readDimension (name: string): Dimension {
  const label = name.startsWith(labelPrefix) ? name.slice(labelPrefix.length) : ''
  const read = label === '' ? readers.get(name) : ({ labels }: LedgerRecord) => labels?.[label] ?? null
  if (read === undefined) throw new UsageError(`--by must be ${[...readers.keys()].join(', ')}, label:NAME, or several of them`)
  return { name, read }
}

/** The sum of some records. */
export interface Sum {
  /** One value for each dimension, in their order. */
  readonly names: ReadonlyArray<string | null>
  requests: number
  /** By leaf. */
  readonly tokens: Record<string, number>
  /** Sum of the leaves. */
  total: number
  /** What was taken from the balances. */
  charged: number
  /** By currency. */
  readonly costs: Map<string, Decimal>
  /** What they would have cost, where that was asked. */
  readonly repriced: Map<string, Decimal>
  /** Requests with a part that has no price. */
  unpriced: number
}

/** What one record cost, and whether a part of it had no price. */
export interface RecordCost {
  readonly amount: Decimal | null
  readonly currency: string
  readonly unpriced: boolean
}

/** Adds records up by some dimensions. Holds the sums and no record. */
export class Sums {
  readonly #by: readonly Dimension[]
  readonly #calendar: Calendar
  readonly #reprice: ((record: LedgerRecord) => RecordCost | null) | null
  readonly #sums = new Map<string, Sum>()
  readonly total: Sum

  /** `reprice`: what a record would have cost; null where it was nothing. */
  constructor (by: readonly Dimension[], calendar: Calendar, reprice: ((record: LedgerRecord) => RecordCost | null) | null = null) {
    this.#by = by
    this.#calendar = calendar
    this.#reprice = reprice
    this.total = newSum(by.map(() => null))
  }

  add (record: LedgerRecord): void {
    const names = this.#by.map(({ read }) => read(record, this.#calendar))
    // No value holds what parts them: a name with one would be told as another, and no two the same.
    const place = names.map((name) => name === null ? '' : `=${name}`).join('\u0000')
    const sum = this.#sums.get(place) ?? newSum(names)
    this.#sums.set(place, sum)
    const cost = costOf(record)
    const other = this.#reprice?.(record) ?? null
    for (const each of [sum, this.total]) count(each, record, cost, this.#reprice === null ? cost : other, other)
  }

  /** In the order of their names. */
  get sorted (): Sum[] {
    return [...this.#sums].sort(([a], [b]) => Number(a > b) - Number(a < b)).map(([, sum]) => sum)
  }

  get reprices (): boolean {
    return this.#reprice !== null
  }
}

function newSum (names: Sum['names']): Sum {
  return {
    names, requests: 0, tokens: Object.fromEntries(leaves.map(({ type }) => [type, 0])), total: 0, charged: 0, costs: new Map(), repriced: new Map(), unpriced: 0,
  }
}

function costOf ({ cost, currency, costParts }: LedgerRecord): RecordCost | null {
  if (currency === undefined) return null
  let unpriced = false
  for (const name in costParts) if (costParts[name] === null) unpriced = true
  return { amount: readDecimal(cost ?? ''), currency, unpriced }
}

function count (sum: Sum, record: LedgerRecord, cost: RecordCost | null, priced: RecordCost | null, other: RecordCost | null): void {
  sum.requests += 1
  sum.charged += record.charged
  for (const { type } of leaves) {
    sum.tokens[type] = Number(sum.tokens[type]) + record[type]
    sum.total += record[type]
  }
  if (priced?.unpriced === true) sum.unpriced += 1
  addCost(sum.costs, cost)
  addCost(sum.repriced, other)
}

function addCost (costs: Map<string, Decimal>, cost: RecordCost | null): void {
  if (cost === null || cost.amount === null) return
  const before = costs.get(cost.currency)
  costs.set(cost.currency, before === undefined ? cost.amount : add(before, cost.amount))
}

/** `1.25 USD`, each currency by itself; empty for none. */
export function costText (costs: ReadonlyMap<string, Decimal>): string {
  return [...costs].map(([currency, amount]) => `${decimalText(amount)} ${currency}`).join(' + ')
}
