import { leaves } from '../../plugins/core/measures.js'
import type { LedgerRecord } from '../../plugins/state/types.js'

/** What usage can be summed by, and where a record says it. Days are days of UTC. */
const readers = {
  group: ({ group }: LedgerRecord) => group,
  key: ({ key }: LedgerRecord) => key,
  model: ({ model }: LedgerRecord) => model,
  day: ({ time }: LedgerRecord) => new Date(time).toISOString().slice(0, 10),
}

export type Dimension = keyof typeof readers

export const dimensions = Object.keys(readers)

export function isDimension (name: string): name is Dimension {
  return Object.hasOwn(readers, name)
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
}

/** Adds records up by some dimensions. Holds the sums and no record. */
export class Sums {
  readonly #by: readonly Dimension[]
  readonly #sums = new Map<string, Sum>()
  readonly total: Sum

  constructor (by: readonly Dimension[]) {
    this.#by = by
    this.total = newSum(by.map(() => null))
  }

  add (record: LedgerRecord): void {
    const names = this.#by.map((dimension) => readers[dimension](record))
    const place = JSON.stringify(names)
    const sum = this.#sums.get(place) ?? newSum(names)
    this.#sums.set(place, sum)
    for (const each of [sum, this.total]) count(each, record)
  }

  /** In the order of their names. */
  get sorted (): Sum[] {
    return [...this.#sums].sort(([a], [b]) => Number(a > b) - Number(a < b)).map(([, sum]) => sum)
  }
}

function newSum (names: Sum['names']): Sum {
  return { names, requests: 0, tokens: Object.fromEntries(leaves.map(({ type }) => [type, 0])), total: 0, charged: 0 }
}

function count (sum: Sum, record: LedgerRecord): void {
  sum.requests += 1
  sum.charged += record.charged
  for (const { type } of leaves) {
    sum.tokens[type] = Number(sum.tokens[type]) + record[type]
    sum.total += record[type]
  }
}
