import { decimalText, type Decimal } from '../../plugins/core/money/decimal.js'
import { leaves } from '../../plugins/core/call/measures.js'
import type { UsageEntry } from '../../plugins/state/usage-store/reader.js'
import { Money } from './money.js'

export type Names = ReadonlyArray<string | null>

/** What one record would have cost, and whether a part of it has no price. */
export interface RecordCost {
  readonly amount: Decimal | null
  readonly currency: string
  readonly unpriced: boolean
}

/** The sum of some records. */
export interface Sum {
  /** One value for each dimension, in their order. */
  readonly names: Names
  requests: number
  /** By leaf. */
  readonly tokens: Readonly<Record<string, number>>
  /** Sum of the leaves. */
  readonly total: number
  /** Tokens taken from the balances. */
  readonly charged: number
  /** By currency. */
  readonly costs: ReadonlyMap<string, Decimal>
  /** What they would have cost, if that was asked. */
  readonly repriced: ReadonlyMap<string, Decimal>
  readonly unpriced: number
}

interface Adding {
  readonly names: Names
  /** Sort key. Its separator is in no value. */
  readonly place: string
  requests: number
  readonly tokens: number[]
  charged: number
  readonly costs: Map<string, Money>
  readonly repriced: Map<string, Money>
  unpriced: number
}

/** Sums by the values of their dimensions, as a tree: finding one makes no text. */
interface Node {
  readonly children: Map<string | null, Node>
  sum: Adding | null
}

/** Adds records up by some dimensions. Holds the sums and no records. */
export class Sums {
  /** Whether it also has what records would have cost. */
  readonly reprices: boolean
  readonly #root: Node = { children: new Map(), sum: null }
  readonly #sums: Adding[] = []

  constructor (reprices = false) {
    this.reprices = reprices
  }

  /** `repriced`: null if it would have cost nothing. */
  add (names: Names, entry: UsageEntry, repriced: RecordCost | null = null): void {
    const sum = this.#find(names)
    sum.requests += entry.requests
    sum.charged += entry.charged
    for (let at = 0; at < sum.tokens.length; at += 1) sum.tokens[at] = Number(sum.tokens[at]) + Number(entry.tokens[at])
    sum.unpriced += this.reprices ? Number(repriced?.unpriced ?? false) : entry.unpriced
    if (entry.currency !== null && entry.cost !== null) moneyOf(sum.costs, entry.currency).add(entry.cost)
    if (repriced !== null && repriced.amount !== null) moneyOf(sum.repriced, repriced.currency).plus(repriced.amount)
  }

  /** Adds sums of other records that were made elsewhere. */
  merge (others: readonly Sum[]): void {
    for (const other of others) addSum(this.#find(other.names), other)
  }

  /** In the order of their names. */
  get sorted (): Sum[] {
    return [...this.#sums].sort((a, b) => Number(a.place > b.place) - Number(a.place < b.place)).map(shown)
  }

  /** The sum of all records; `names` without values. */
  total (count: number): Sum {
    const all = newSum(Array<null>(count).fill(null))
    for (const sum of this.#sums) addSum(all, shown(sum))
    return shown(all)
  }

  #find (names: Names): Adding {
    let node = this.#root
    for (const name of names) {
      let next = node.children.get(name)
      if (next === undefined) node.children.set(name, next = { children: new Map(), sum: null })
      node = next
    }
    if (node.sum === null) this.#sums.push(node.sum = newSum(names))
    return node.sum
  }
}

function newSum (names: Names): Adding {
  const place = names.map((name) => name === null ? '' : `=${name}`).join('\u0000')
  return { names, place, requests: 0, tokens: leaves.map(() => 0), charged: 0, costs: new Map(), repriced: new Map(), unpriced: 0 }
}

function addSum (sum: Adding, { requests, tokens, charged, costs, repriced, unpriced }: Sum): void {
  sum.requests += requests
  sum.charged += charged
  sum.unpriced += unpriced
  leaves.forEach(({ type }, at) => { sum.tokens[at] = Number(sum.tokens[at]) + Number(tokens[type]) })
  for (const [currency, amount] of costs) moneyOf(sum.costs, currency).plus(amount)
  for (const [currency, amount] of repriced) moneyOf(sum.repriced, currency).plus(amount)
}

function moneyOf (costs: Map<string, Money>, currency: string): Money {
  const known = costs.get(currency)
  if (known !== undefined) return known
  const money = new Money()
  costs.set(currency, money)
  return money
}

function shown ({ names, requests, tokens, charged, costs, repriced, unpriced }: Adding): Sum {
  const total = tokens.reduce((sum, each) => sum + each, 0)
  return {
    names,
    requests,
    tokens: Object.fromEntries(leaves.map(({ type }, at) => [type, Number(tokens[at])])),
    total,
    charged,
    costs: totals(costs),
    repriced: totals(repriced),
    unpriced,
  }
}

/** In the order of their names. */
function totals (costs: ReadonlyMap<string, Money>): Map<string, Decimal> {
  return new Map([...costs].sort(([a], [b]) => Number(a > b) - Number(a < b)).map(([currency, money]) => [currency, money.total]))
}

/** `1.25 USD`, each currency by itself; empty for none. */
export function costText (costs: ReadonlyMap<string, Decimal>): string {
  return [...costs].map(([currency, amount]) => `${decimalText(amount)} ${currency}`).join(' + ')
}
