/** Price rows as operators write them: per million tokens, in the list's currency. Every mistake is reported with its place. */
import { decimalText, isLess, one, readDecimal, shifted, type Decimal } from '../core/money/decimal.js'
import { didYouMean } from '../core/config/did-you-mean.js'
import { isObject, type JsonObject } from '../core/body/json-object.js'
import { readTime } from '../core/config/read-time.js'
import { plainSheet } from './plain-bill.js'
import {
  eachNames, rateNames, type EachName, type Path, type PriceRow, type Rates, type Report, type Sheet, type Step, type Variant,
} from './price-row.js'

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
const maxFactor: Decimal = { units: 100n, places: 0 }
/** A number in a JSON or YAML text is exact up to so many digits. */
const exactDigits = 15
const millionPlaces = 6

const sheetFields: readonly string[] = [...rateNames, 'above']
const rowFields: readonly string[] = [...sheetFields, 'tiers', 'speeds', 'regions', 'each', 'tools', 'from', 'until', 'currency']

/** Fields that state when and in which currency a row's prices apply. */
const conditions: ReadonlySet<string> = new Set(['from', 'until', 'currency'])

/** The rows of one model: one, or several that follow each other in time. Empty if there are problems. */
export function readRows (value: unknown, path: Path, currency: string, report: Report): PriceRow[] {
  if (!Array.isArray(value)) return readRow(value, path, currency, report)
  if (value.length === 0) report(path, 'has no prices')
  const rows = value.flatMap((each: unknown, index) => readRow(each, [...path, index], currency, report))
  rows.forEach((row, index) => {
    const before = rows.slice(0, index).some(({ from, until }) => row.from < until && from < row.until)
    if (before) report([...path, index], 'holds at a time when another of its rows does')
  })
  return rows
}

function readRow (value: unknown, path: Path, currency: string, report: Report): PriceRow[] {
  if (!isObject(value)) {
    report(path, 'must be an object of prices')
    return []
  }
  refuseUnknown(value, rowFields, path, report)
  if (Object.keys(value).every((name) => conditions.has(name))) report(path, 'has no prices')
  if (value['currency'] !== undefined && value['currency'] !== currency) {
    report([...path, 'currency'], `is ${String(value['currency'])} among prices in ${currency}: a gateway counts in one currency`)
  }
  const from = readDate(value['from'], [...path, 'from'], report) ?? -Infinity
  const until = readDate(value['until'], [...path, 'until'], report) ?? Infinity
  if (from >= until) report([...path, 'until'], 'must be after from')
  const bounds = likeDollars.has(currency) ? dollarBounds : looseBounds
  const sheet = readSheet(value, path, bounds, report)
  const each = readEach(value['each'], [...path, 'each'], bounds, report)
  return [{
    sheet,
    plain: plainSheet(sheet, each),
    tiers: readVariants(value['tiers'], [...path, 'tiers'], bounds, report),
    speeds: readVariants(value['speeds'], [...path, 'speeds'], bounds, report),
    regions: readNamed(value['regions'], [...path, 'regions'], report, (factor, at) => readFactor(factor, at, report)),
    each,
    tools: readOwnSheet(value['tools'] ?? {}, [...path, 'tools'], bounds, report),
    from,
    until,
    source: value,
  }]
}

function refuseUnknown (value: JsonObject, known: readonly string[], path: Path, report: Report): void {
  for (const name of Object.keys(value)) if (!known.includes(name)) report([...path, name], `is not known${didYouMean(name, known)}`)
}

/** Reads an object that is a sheet only, so that it may have no other fields. */
function readOwnSheet (value: unknown, path: Path, bounds: Bounds, report: Report): Sheet {
  if (!isObject(value)) {
    report(path, 'must be an object of prices')
    return { rates: new Map(), above: [] }
  }
  refuseUnknown(value, sheetFields, path, report)
  return readSheet(value, path, bounds, report)
}

function readSheet (value: JsonObject, path: Path, bounds: Bounds, report: Report): Sheet {
  const { above = [] } = value
  if (!Array.isArray(above)) report([...path, 'above'], 'must be a list')
  const steps: unknown[] = Array.isArray(above) ? above : []
  const read = steps.flatMap((step, index) => readStep(step, [...path, 'above', index], bounds, report))
  read.sort((a, b) => a.inputTokens - b.inputTokens)
  read.forEach(({ inputTokens }, index) => {
    if (inputTokens === read[index - 1]?.inputTokens) report([...path, 'above'], `has ${inputTokens} twice`)
  })
  return { rates: readRates(value, path, bounds, report), above: read }
}

function readStep (value: unknown, path: Path, bounds: Bounds, report: Report): Step[] {
  if (!isObject(value)) {
    report(path, 'must be an object with inputTokens and prices')
    return []
  }
  refuseUnknown(value, [...rateNames, 'inputTokens', 'inclusive'], path, report)
  const { inputTokens, inclusive = false } = value
  if (typeof inclusive !== 'boolean') report([...path, 'inclusive'], 'must be true or false')
  if (typeof inputTokens !== 'number' || !Number.isSafeInteger(inputTokens) || inputTokens < 1) {
    report([...path, 'inputTokens'], 'must be a whole number of at least 1')
    return []
  }
  return [{ inputTokens, inclusive: inclusive === true, rates: readRates(value, path, bounds, report) }]
}

function readRates (value: JsonObject, path: Path, bounds: Bounds, report: Report): Rates {
  const rates = new Map<string, Decimal>()
  for (const name of rateNames) {
    if (value[name] === undefined) continue
    rates.set(name, shifted(readPrice(value[name], bounds.perMillion, [...path, name], report), millionPlaces))
  }
  return rates
}

function readVariants (value: unknown, path: Path, bounds: Bounds, report: Report): Map<string, Variant> {
  return readNamed(value, path, report, (given, at) => {
    return typeof given === 'number' ? { factor: readFactor(given, at, report) } : { sheet: readOwnSheet(given, at, bounds, report) }
  })
}

/** Reads variants by how a reply is served. Names are compared in lower case. */
function readNamed<T> (value: unknown, path: Path, report: Report, read: (given: unknown, at: Path) => T): Map<string, T> {
  const found = new Map<string, T>()
  for (const [name, given] of entriesOf(value, path, report)) {
    const at = [...path, name]
    if (found.has(name.toLowerCase())) report(at, 'is there in other letters, too')
    found.set(name.toLowerCase(), read(given, at))
  }
  return found
}

function readEach (value: unknown, path: Path, bounds: Bounds, report: Report): Map<EachName, Decimal> {
  const given = new Map(entriesOf(value, path, report))
  for (const name of given.keys()) {
    if (!eachNames.some((known) => known === name)) report([...path, name], `is not known${didYouMean(name, eachNames)}`)
  }
  return new Map(eachNames.filter((name) => given.has(name)).map((name) => [
    name, readPrice(given.get(name), bounds.each, [...path, name], report),
  ]))
}

function entriesOf (value: unknown, path: Path, report: Report): Array<[string, unknown]> {
  if (value === undefined) return []
  if (isObject(value)) return Object.entries(value)
  report(path, 'must be an object')
  return []
}

/** Reads a price, or reports why it is not valid. `most`: the limit above which a price is refused. */
export function readPrice (value: unknown, most: Decimal, path: Path, report: Report, maxDigits = exactDigits): Decimal {
  const price = typeof value === 'number' ? readDecimal(String(value)) : null
  if (typeof value !== 'number') {
    report(path, `must be a number, not ${typeof value === 'string' ? 'text' : value === null ? 'null' : typeof value}`)
  } else if (price === null) report(path, `must be a number, not ${String(value)}`)
  else if (price.units < 0) report(path, 'must not be negative')
  else if (isLess(most, price)) report(path, `is above ${decimalText(most)}, which nothing costs: is it in another unit?`)
  else if (price.units.toString().replace(/0+$/, '').length > maxDigits) {
    report(path, `has more than ${maxDigits} digits, and would be rounded`)
  }
  return price ?? one
}

export function readFactor (value: unknown, path: Path, report: Report): Decimal {
  const factor = readPrice(value, maxFactor, path, report)
  if (factor.units === 0) report(path, 'must be above 0')
  return factor
}

function readDate (value: unknown, path: Path, report: Report): number | null {
  if (value === undefined) return null
  const time = typeof value === 'string' ? readTime(value) : NaN
  if (Number.isNaN(time)) report(path, 'must be a date such as 2027-01-01 or 2027-01-01T00:00:00Z')
  return time
}
