/** The prices that a request may have before it is sent: the same for all requests for a model that the same upstreams may take. */
import { one, type Decimal } from '../core/money/decimal.js'
import type { ModelCall } from '../core/call/model-call.js'
import type { Upstream } from '../core/upstream/upstream.js'
import { dearer } from './estimate.js'
import type { PriceRow } from './price-row.js'
import { holdsAt, type Match, type PriceTable } from './price-table.js'
import { plainRates, type PlainRates } from './plain-forecast.js'
import { matchOf } from './pricing.js'

/** The fields of an upstream that prices depend on. */
type Taker = Pick<Upstream, 'name' | 'models'>

export interface PriceSource {
  readonly table: PriceTable
  /** The upstreams that may take a request; empty if unknown. The same array for as long as they are the same. */
  readonly takersOf: (llm: ModelCall) => readonly Taker[]
  /** Price factor of an upstream, by its name. */
  readonly factorOf: (upstream: string | null) => Decimal
}

export interface Outlook {
  /** The upstreams and the model that it is for. */
  readonly takers: readonly Taker[]
  readonly model: string | null
  /** A row for each model that may reply; null for one without a price. At least one. */
  readonly rows: ReadonlyArray<PriceRow | null>
  /** The largest factor of the upstreams that may take it. */
  readonly factor: Decimal
  /** Rates of the only row, including the factor, if it has rates of tokens and nothing else; otherwise null. */
  readonly plain: PlainRates | null
  /** When it is valid, in milliseconds since the epoch. */
  readonly from: number
  readonly until: number
}

/** Callers may invent names, of some thousand characters at most. */
const maxRemembered = 1_000

/** Looks into the price lists once for each model. */
export class Outlooks {
  readonly #source: PriceSource
  readonly #known = new WeakMap<readonly Taker[], Map<string | null, Outlook>>()
  // Most requests are for the model of the one before; its outlook is then found without a map.
  #last: Outlook | null = null

  constructor (source: PriceSource) {
    this.#source = source
  }

  of (llm: ModelCall): Outlook {
    const takers = this.#source.takersOf(llm)
    const time = llm.arrivedAt
    const last = this.#last
    if (last !== null && last.takers === takers && last.model === llm.model && holdsAt(last, time)) return last
    this.#last = this.#remembered(takers, llm.model, time)
    return this.#last
  }

  #remembered (takers: readonly Taker[], model: string | null, time: number): Outlook {
    const byModel = this.#byModel(takers)
    const known = byModel.get(model)
    if (known !== undefined && holdsAt(known, time)) return known
    const found = this.#find(takers, model, time)
    if (byModel.size >= maxRemembered) byModel.clear()
    byModel.set(model, found)
    return found
  }

  #byModel (takers: readonly Taker[]): Map<string | null, Outlook> {
    const known = this.#known.get(takers)
    if (known !== undefined) return known
    const made = new Map<string | null, Outlook>()
    this.#known.set(takers, made)
    return made
  }

  /** By the requested name, and by the upstreams' names for it: a reply may state either. */
  #find (takers: readonly Taker[], model: string | null, time: number): Outlook {
    const { table, factorOf } = this.#source
    const asked = matchOf(table, { reply: null, asked: model, alias: null }, time)
    const aliases = takers.map(({ models }) => table.find(models.get(model ?? '') ?? null, 'alias', time))
    const rows = asked === null ? [] : [asked.row]
    for (const alias of aliases) {
      const row = alias?.row ?? null
      if (asked === null || (row !== null && row !== asked.row)) rows.push(row)
    }
    const factor = takers.map(({ name }) => factorOf(name)).reduce<Decimal | null>(dearer, null) ?? one
    const [row = null, ...others] = rows
    return {
      takers,
      model,
      rows: [row, ...others],
      factor,
      plain: row === null || others.length > 0 ? null : plainRates(row, factor),
      ...whenAll([asked, ...aliases]),
    }
  }
}

/** The time in which each match holds. */
function whenAll (matches: ReadonlyArray<Match | null>): Pick<Outlook, 'from' | 'until'> {
  let from = -Infinity
  let until = Infinity
  for (const match of matches) {
    if (match === null) continue
    // Between two of its rows, or beyond them: another one may hold in a moment.
    if (match.row === null) return { from: 0, until: 0 }
    from = Math.max(from, match.row.from)
    until = Math.min(until, match.row.until)
  }
  return { from, until }
}
