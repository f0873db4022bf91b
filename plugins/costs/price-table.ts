/** Which entry of the price lists applies to a model. */
import { hash } from 'node:crypto'
import type { Cost } from '../core/money/cost.js'
import { globOf } from '../core/config/glob.js'
import { isCurrency } from './currency.js'
import { Place } from './place.js'
import { PriceError, type PlacedProblem } from './price-error.js'
import { readModels, readPriceFile } from './price-file.js'
import type { PriceRow } from './price-row.js'

/** An entry that matches a name. */
export interface Entry {
  /** Its key in the list: a name, or a glob. */
  readonly key: string
  /** The file that it is in, or `prices.models`. */
  readonly place: string
  readonly how: 'name' | 'name without its date' | 'glob'
  readonly rows: readonly PriceRow[]
}

export interface PriceSources {
  readonly currency?: string | undefined
  readonly files?: readonly string[] | undefined
  readonly models?: unknown
}

export interface Match {
  readonly entry: Entry
  /** Null if none of its rows is valid at the time. */
  readonly row: PriceRow | null
  readonly by: NonNullable<Cost['by']>
}

interface Layer {
  readonly place: string
  readonly models: ReadonlyMap<string, readonly PriceRow[]>
  /** The longest first. */
  readonly globs: ReadonlyArray<{ readonly key: string, readonly fits: (name: string) => boolean, readonly rows: readonly PriceRow[] }>
}

const inlinePlace = 'prices.models'
/** Callers may invent names, a thousand in one body, for which each is looked up several times. */
const maxRemembered = 4_000
/** No model has a longer name. */
const maxNameLength = 256
/** `-2025-08-07`, `-20250807`, `@20250807` at the end of a name. */
const date = /[-@](?:20\d\d-\d\d-\d\d|20\d{6})$/

/** Price lists in the order of precedence: the configuration's own, then its files from the last. */
export class PriceTable {
  readonly currency: string
  readonly #layers: readonly Layer[]
  readonly #found = new Map<string, Entry | null>()
  readonly #digests = new WeakMap<PriceRow, string>()
  // Most replies are of the model of the one before; its row is then found without a map.
  #lastName = ''
  #last: Match | null = null

  /** Throws PriceError. Reads the files synchronously. */
  constructor ({ currency = 'USD', files = [], models = {} }: PriceSources) {
    if (!isCurrency(currency)) {
      throw new PriceError([{ place: 'prices.currency', line: null, path: '', message: 'is not a currency of ISO 4217' }])
    }
    this.currency = currency
    const problems: PlacedProblem[] = []
    const inlineTop = new Place('', (path, message) => problems.push({ place: inlinePlace, line: null, path, message }))
    const inline = readModels(models, inlineTop, currency)
    const read = files.map((file): Layer => layerOf(file, readPriceFile(file, currency, problems)))
    if (problems.length > 0) throw new PriceError(problems)
    this.#layers = [layerOf(inlinePlace, inline), ...read.reverse()]
  }

  get hasEntries (): boolean {
    return this.#layers.some(({ models }) => models.size > 0)
  }

  /** The match for one of a model's names at a time; null for none. */
  find (name: string | null, by: Match['by'], time: number): Match | null {
    if (name === null) return null
    const last = this.#last
    if (last !== null && last.row !== null && last.by === by && this.#lastName === name && holdsAt(last.row, time)) return last
    const entry = this.entry(name.slice(0, maxNameLength))
    if (entry === null) return null
    this.#lastName = name
    this.#last = { entry, row: rowAt(entry.rows, time), by }
    return this.#last
  }

  /** The entry for a model's name; null for none. */
  entry (name: string): Entry | null {
    const known = this.#found.get(name)
    if (known !== undefined) return known
    if (this.#found.size >= maxRemembered) this.#found.clear()
    const found = this.#find(name)
    this.#found.set(name, found)
    return found
  }

  /** 16 hex digits that are the same for the same prices, in whichever list they are. */
  digest (row: PriceRow): string {
    const known = this.#digests.get(row)
    if (known !== undefined) return known
    const digest = hash('sha256', JSON.stringify([this.currency, row.source]), 'hex').slice(0, 16)
    this.#digests.set(row, digest)
    return digest
  }

  #find (name: string): Entry | null {
    for (const layer of this.#layers) {
      const found = inLayer(layer, name)
      if (found !== null) return found
    }
    return null
  }
}

/** The row that is valid at a time; null for none. */
export function rowAt (rows: readonly PriceRow[], time: number): PriceRow | null {
  for (const row of rows) if (holdsAt(row, time)) return row
  return null
}

export function holdsAt ({ from, until }: Pick<PriceRow, 'from' | 'until'>, time: number): boolean {
  return from <= time && time < until
}

function inLayer ({ place, models, globs }: Layer, name: string): Entry | null {
  const exact = models.get(name)
  if (exact !== undefined) return { key: name, place, how: 'name', rows: exact }
  const dateless = name.replace(date, '')
  const undated = dateless === name ? undefined : models.get(dateless)
  if (undated !== undefined) return { key: dateless, place, how: 'name without its date', rows: undated }
  const glob = globs.find(({ fits }) => fits(name))
  return glob === undefined ? null : { key: glob.key, place, how: 'glob', rows: glob.rows }
}

function layerOf (place: string, models: ReadonlyMap<string, readonly PriceRow[]>): Layer {
  const globs = [...models].filter(([key]) => key.includes('*')).sort(([a], [b]) => b.length - a.length)
  return { place, models, globs: globs.map(([key, rows]) => ({ key, fits: globOf(key), rows })) }
}
