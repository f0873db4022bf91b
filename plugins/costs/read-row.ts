/** Price rows as operators write them: per million tokens, in the list's currency. Every mistake is reported with its place. */
import { decimalText, isLess, one, readDecimal, shifted, type Decimal } from '../core/money/decimal.js'
import { didYouMean } from '../core/config/did-you-mean.js'
import { isObject, type JsonObject } from '../core/body/json-object.js'
import { readTime } from '../core/config/read-time.js'
import type { Place } from './place.js'
import { plainSheet } from './plain-bill.js'
import { eachNames, rateNames, type EachName, type PriceRow, type Rates, type Sheet, type Step, type Variant } from './price-row.js'

/** Higher than any real price: a price above was probably written in another unit. */
interface Bounds {
  /** For a million tokens. */
  readonly perMillion: Decimal
  /** For one search, image, second or request. */
  readonly each: Decimal
}

const dollarBounds: Bounds = { perMillion: { units: 10_000, places: 0 }, each: { units: 1_000, places: 0 } }
/** A dollar is some thousand units of many currencies, and a million of the smallest. */
const looseBounds: Bounds = { perMillion: { units: 1e10, places: 0 }, each: { units: 1e9, places: 0 } }
/** Currencies whose unit is about a dollar. */
const likeDollars: ReadonlySet<string> = new Set(['USD', 'EUR', 'GBP', 'CHF', 'CAD', 'AUD', 'NZD', 'SGD'])
const maxFactor: Decimal = { units: 100, places: 0 }
/** A number in a JSON or YAML text is exact up to so many digits. */
const exactDigits = 15
const millionPlaces = 6

const sheetFields: readonly string[] = [...rateNames, 'above']
const rowFields: readonly string[] = [...sheetFields, 'tiers', 'speeds', 'regions', 'each', 'tools', 'from', 'until', 'currency']

/** Fields that state when and in which currency a row's prices apply. */
const conditions: ReadonlySet<string> = new Set(['from', 'until', 'currency'])

/** The rows of one model: one, or several that follow each other in time. Empty if there are problems. */
export function readRows (value: unknown, at: Place, currency: string): PriceRow[] {
  if (!Array.isArray(value)) return readRow(value, at, currency)
  if (value.length === 0) at.report('has no prices')
  const rows = value.flatMap((each: unknown, index) => readRow(each, at.in(index), currency))
  rows.forEach((row, index) => {
    const before = rows.slice(0, index).some(({ from, until }) => row.from < until && from < row.until)
    if (before) at.in(index).report('holds at a time when another of its rows does')
  })
  return rows
}

function readRow (value: unknown, at: Place, currency: string): PriceRow[] {
  if (!isObject(value)) {
    at.report('must be an object of prices')
    return []
  }
  refuseUnknown(value, rowFields, at)
  if (Object.keys(value).every((name) => conditions.has(name))) at.report('has no prices')
  if (value['currency'] !== undefined && value['currency'] !== currency) {
    at.in('currency').report(`is ${String(value['currency'])} among prices in ${currency}: a gateway counts in one currency`)
  }
  const from = readDate(value['from'], at.in('from')) ?? -Infinity
  const until = readDate(value['until'], at.in('until')) ?? Infinity
  if (from >= until) at.in('until').report('must be after from')
  const bounds = likeDollars.has(currency) ? dollarBounds : looseBounds
  const sheet = readSheet(value, at, bounds)
  const each = readEach(value['each'], at.in('each'), bounds)
  return [{
    sheet,
    plain: plainSheet(sheet, each),
    tiers: readVariants(value['tiers'], at.in('tiers'), bounds),
    speeds: readVariants(value['speeds'], at.in('speeds'), bounds),
    regions: readNamed(value['regions'], at.in('regions'), readFactor),
    each,
    tools: readOwnSheet(value['tools'] ?? {}, at.in('tools'), bounds),
    from,
    until,
    source: value,
  }]
}

function refuseUnknown (value: JsonObject, known: readonly string[], at: Place): void {
  for (const name of Object.keys(value)) if (!known.includes(name)) at.in(name).report(`is not known${didYouMean(name, known)}`)
}

/** Reads an object that is a sheet only, so that it may have no other fields. */
function readOwnSheet (value: unknown, at: Place, bounds: Bounds): Sheet {
  if (!isObject(value)) {
    at.report('must be an object of prices')
    return { rates: new Map(), above: [] }
  }
  refuseUnknown(value, sheetFields, at)
  return readSheet(value, at, bounds)
}

function readSheet (value: JsonObject, at: Place, bounds: Bounds): Sheet {
  const { above = [] } = value
  if (!Array.isArray(above)) at.in('above').report('must be a list')
  const steps: unknown[] = Array.isArray(above) ? above : []
  const read = steps.flatMap((step, index) => readStep(step, at.in('above', index), bounds))
  read.sort((a, b) => a.inputTokens - b.inputTokens)
  read.forEach(({ inputTokens }, index) => {
    if (inputTokens === read[index - 1]?.inputTokens) at.in('above').report(`has ${inputTokens} twice`)
  })
  return { rates: readRates(value, at, bounds), above: read }
}

function readStep (value: unknown, at: Place, bounds: Bounds): Step[] {
  if (!isObject(value)) {
    at.report('must be an object with inputTokens and prices')
    return []
  }
  refuseUnknown(value, [...rateNames, 'inputTokens', 'inclusive'], at)
  const { inputTokens, inclusive = false } = value
  if (typeof inclusive !== 'boolean') at.in('inclusive').report('must be true or false')
  if (typeof inputTokens !== 'number' || !Number.isSafeInteger(inputTokens) || inputTokens < 1) {
    at.in('inputTokens').report('must be a whole number of at least 1')
    return []
  }
  return [{ inputTokens, inclusive: inclusive === true, rates: readRates(value, at, bounds) }]
}

function readRates (value: JsonObject, at: Place, bounds: Bounds): Rates {
  const rates = new Map<string, Decimal>()
  for (const name of rateNames) {
    if (value[name] === undefined) continue
    rates.set(name, shifted(readPrice(value[name], bounds.perMillion, at.in(name)), millionPlaces))
  }
  return rates
}

function readVariants (value: unknown, at: Place, bounds: Bounds): Map<string, Variant> {
  return readNamed(value, at, (given, named) => {
    return typeof given === 'number' ? { factor: readFactor(given, named) } : { sheet: readOwnSheet(given, named, bounds) }
  })
}

/** Reads variants by how a reply is served. Names are compared in lower case. */
function readNamed<T> (value: unknown, at: Place, read: (given: unknown, at: Place) => T): Map<string, T> {
  const found = new Map<string, T>()
  for (const [name, given] of entriesOf(value, at)) {
    const named = at.in(name)
    if (found.has(name.toLowerCase())) named.report('is there in other letters, too')
    found.set(name.toLowerCase(), read(given, named))
  }
  return found
}

function readEach (value: unknown, at: Place, bounds: Bounds): Map<EachName, Decimal> {
  const given = new Map(entriesOf(value, at))
  for (const name of given.keys()) {
    if (!eachNames.some((known) => known === name)) at.in(name).report(`is not known${didYouMean(name, eachNames)}`)
  }
  return new Map(eachNames.filter((name) => given.has(name)).map((name) => [
    name, readPrice(given.get(name), bounds.each, at.in(name)),
  ]))
}

function entriesOf (value: unknown, at: Place): Array<[string, unknown]> {
  if (value === undefined) return []
  if (isObject(value)) return Object.entries(value)
  at.report('must be an object')
  return []
}

/** Reads a price, or reports why it is not valid. `most`: the limit above which a price is refused. */
export function readPrice (value: unknown, most: Decimal, at: Place, maxDigits = exactDigits): Decimal {
  const price = typeof value === 'number' ? readDecimal(String(value)) : null
  if (typeof value !== 'number') {
    at.report(`must be a number, not ${typeof value === 'string' ? 'text' : value === null ? 'null' : typeof value}`)
  } else if (price === null) at.report(`must be a number, not ${String(value)}`)
  else if (price.units < 0) at.report('must not be negative')
  else if (isLess(most, price)) at.report(`is above ${decimalText(most)}, which nothing costs: is it in another unit?`)
  else if (price.units.toString().replace(/0+$/, '').length > maxDigits) {
    at.report(`has more than ${maxDigits} digits, and would be rounded`)
  }
  return price ?? one
}

export function readFactor (value: unknown, at: Place): Decimal {
  const factor = readPrice(value, maxFactor, at)
  if (factor.units === 0) at.report('must be above 0')
  return factor
}

function readDate (value: unknown, at: Place): number | null {
  if (value === undefined) return null
  const time = typeof value === 'string' ? readTime(value) : NaN
  if (Number.isNaN(time)) at.report('must be a date such as 2027-01-01 or 2027-01-01T00:00:00Z')
  return time
}
