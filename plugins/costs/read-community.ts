/**
 * Reads the community's price list `model_prices_and_context_window.json`, as it is: an entry for each model, prices per token.
 * https://github.com/BerriAI/litellm/blob/main/model_prices_and_context_window.json
 *
 * Its own conventions are kept: output prices apply to reasoning that has none of its own, one price of a cache write applies to five
 * minutes and to unknown lifetimes, and kinds with a price of their own keep it in tiers and above thresholds that name none. Fields for
 * what no reply reports (pixels, storage) are ignored. Containers have an entry of their own.
 */
import { inclusiveThresholds, searchedByRequest } from '../protocols/price-conventions.js'
import { isSame, shifted, type Decimal } from '../core/money/decimal.js'
import type { Place } from './place.js'
import { plainSheet } from './plain-bill.js'
import { withKinds, type EachName, type PriceRow, type Rates, type Sheet, type Step, type Variant } from './price-row.js'
import { isObject, valueAt, type JsonObject } from '../core/body/json-object.js'
import { readFactor, readPrice } from './read-row.js'

/** Highest plausible price of a token. */
const maxPerToken = { units: 1, places: 2 }
const maxEach = { units: 1_000, places: 0 }
/** Programs write the list, with numbers such as 8.000000000000001e-07: they are read as the same number rounded to so many digits. */
const floatDigits = 17
const containerField = 'code_interpreter_cost_per_session'
/** Keys of the list that are no models. */
const notModels: ReadonlySet<string> = new Set(['sample_spec', 'fallback_generalizations'])

const ratesOf = new Map<string, readonly string[]>(Object.entries({
  input_cost_per_token: ['input', 'tool_input'],
  output_cost_per_token: ['output'],
  output_cost_per_reasoning_token: ['reasoning'],
  cache_read_input_token_cost: ['cache_read'],
  cache_creation_input_token_cost: ['cache_write_5m', 'cache_write'],
  // Lifetimes, and no numbers of tokens. No provider offers both.
  cache_creation_input_token_cost_above_1hr: ['cache_write_1h'],
  cache_creation_input_token_cost_above_12hr: ['cache_write_1h'],
  cache_read_input_audio_token_cost: ['cache_read_audio'],
  cache_read_input_image_token_cost: ['cache_read_image'],
  input_cost_per_audio_token: ['input_audio'],
  output_cost_per_audio_token: ['output_audio'],
  input_cost_per_image_token: ['input_image'],
  output_cost_per_image_token: ['output_image'],
  input_cost_per_video_token: ['input_video'],
  output_cost_per_video_token: ['output_video'],
}))

/** A price per token, above a size of the input, in a service tier. */
const priceField = new RegExp(
  `^(${[...ratesOf.keys()].sort((a, b) => b.length - a.length).join('|')})(?:_above_(\\d+)(k|m)_tokens)?(?:_([a-z]+))?$`
)
const tierNames = new Map([['batches', 'batch']])

/** True for an object of this form. */
export function isCommunityList (value: JsonObject): boolean {
  return Object.values(value).some((entry) => isObject(entry) && entry['litellm_provider'] !== undefined)
}

/** Models with their rows. */
export function readCommunityList (list: JsonObject, at: Place): Map<string, PriceRow[]> {
  const models = Object.entries(list).filter(([name]) => !notModels.has(name))
  return new Map(models.flatMap(([name, value]): Array<[string, PriceRow[]]> => {
    const model = String(valueAt(value, ['alias_of']) ?? name)
    const entry = list[model]
    const container = valueAt(list, [`${String(valueAt(entry, ['litellm_provider']))}/container`, containerField])
    if (isObject(entry)) return [[name, [readEntry({ [containerField]: container, ...entry }, at.in(model))]]]
    if (model === name) at.in(name).report('must be an object')
    return []
  }))
}

/** What an entry says of one tier, by threshold; 0 for the base rates. */
type Written = Map<number, Map<string, Decimal>>

function readEntry (entry: JsonObject, at: Place): PriceRow {
  const common: Written = new Map()
  const tiers = new Map<string, Written>([['', common]])
  // Prices that change by the hour cannot be applied, so such an entry has none.
  const fields = entry['off_peak_pricing'] === undefined ? Object.entries(entry) : []
  for (const [field, value] of fields) {
    const found = value === null ? null : priceField.exec(field)
    if (found === null) continue
    const [, base = '', size = '0', unit, suffix = ''] = found
    const threshold = Number(size) * (unit === 'm' ? 1_000_000 : 1_000)
    const price = readListed(value, maxPerToken, at.in(field))
    const rates = mapOf(mapOf(tiers, tierNames.get(suffix) ?? suffix), threshold)
    ratesOf.get(base)?.forEach((rate) => rates.set(rate, price))
  }
  addTieredPricing(entry, common, at)
  const inclusive = inclusiveThresholds.has(String(entry['litellm_provider']))
  const thresholds = [...common].filter(([, rates]) => rates.has('input')).map(([size]) => size)
  tiers.delete('')
  const sheet = sheetOf(common, common.keys(), inclusive)
  const each = readEach(entry, at)
  return {
    sheet,
    plain: plainSheet(sheet, each),
    tiers: new Map([...tiers].map(([name, written]) => [
      name, { sheet: sheetOf(written, [...thresholds, ...written.keys()], inclusive, common.get(0)) },
    ])),
    ...readModifiers(entry['provider_specific_entry'], at.in('provider_specific_entry')),
    each,
    tools: { rates: new Map(), above: [] },
    from: -Infinity,
    until: Infinity,
    source: entry,
  }
}

function readListed (value: unknown, most: Decimal, at: Place): Decimal {
  return readPrice(value, most, at, floatDigits)
}

/** The inner map of a name, made at the first use. */
function mapOf<Name, Inner, Value> (maps: Map<Name, Map<Inner, Value>>, name: Name): Map<Inner, Value> {
  const found = maps.get(name) ?? new Map<Inner, Value>()
  maps.set(name, found)
  return found
}

/** Prices by ranges of the input, instead of thresholds in names. */
function addTieredPricing (entry: JsonObject, common: Written, at: Place): void {
  const ranges: unknown[] = Array.isArray(entry['tiered_pricing']) ? entry['tiered_pricing'] : []
  ranges.forEach((given, index) => {
    // Ranges of anything but the input have other names.
    if (!isObject(given) || given['range'] === undefined) return
    const [from]: unknown[] = Array.isArray(given['range']) ? given['range'] : []
    if (typeof from !== 'number' || !Number.isSafeInteger(from) || from < 0) {
      at.in('tiered_pricing', index).report('must have a range that begins with a whole number of tokens')
      return
    }
    for (const [field, names] of ratesOf) {
      if (given[field] == null) continue
      const price = readListed(given[field], maxPerToken, at.in('tiered_pricing', index, field))
      for (const rate of names) mapOf(common, from).set(rate, price)
    }
  })
}

/**
 * A tier has no price above a threshold of the common prices unless it names one. If only some kind of content has a price above a
 * threshold, as audio has in Gemini's small models, all others keep theirs.
 */
function sheetOf (written: Written, thresholds: Iterable<number>, inclusive: boolean, common?: Rates): Sheet {
  const base = withKinds(written.get(0) ?? new Map<string, Decimal>(), common)
  const asOutput = sameReasoning(base)
  const sizes = [...new Set(thresholds)].filter((size) => size > 0).sort((a, b) => a - b)
  const above = sizes.map((inputTokens): Step => {
    const own = written.get(inputTokens) ?? new Map<string, Decimal>()
    const rates = own.size === 0 || own.has('input') ? withKinds(own, base) : new Map([...base, ...own])
    return { inputTokens, inclusive, rates: withReasoning(rates, asOutput) }
  })
  return { rates: withReasoning(base, asOutput), above }
}

/** Reasoning is output, at the price of output, unless the entry has another price. */
function sameReasoning (base: Rates): boolean {
  const own = base.get('reasoning')
  return own === undefined || isSame(own, base.get('output'))
}

function withReasoning (rates: ReadonlyMap<string, Decimal>, asOutput: boolean): Rates {
  const output = rates.get('output')
  return !asOutput || rates.has('reasoning') || output === undefined ? rates : new Map([...rates, ['reasoning', output]])
}

/** `fast` is a speed; the others are regions. */
function readModifiers (value: unknown, at: Place): Pick<PriceRow, 'speeds' | 'regions'> {
  const given = isObject(value) ? Object.entries(value).filter(([, factor]) => typeof factor === 'number') : []
  const factors = given.map(([name, factor]): [string, Decimal] => [name, readFactor(factor, at.in(name))])
  const isSpeed = ([name]: [string, Decimal]): boolean => name === 'fast'
  return {
    speeds: new Map(factors.filter(isSpeed).map(([name, factor]): [string, Variant] => [name, { factor }])),
    regions: new Map(factors.filter((each) => !isSpeed(each))),
  }
}

function readEach (entry: JsonObject, at: Place): Map<EachName, Decimal> {
  const each = new Map<EachName, Decimal>()
  const take = (name: EachName, field: string, thousand = false): void => {
    if (entry[field] == null) return
    const price = readListed(entry[field], maxEach, at.in(field))
    each.set(name, thousand ? shifted(price, 3) : price)
  }
  const drawn = entry['mode'] === 'image_generation' ? 'input_cost_per_image' : 'output_cost_per_image'
  take('image', entry['output_cost_per_image'] === undefined ? drawn : 'output_cost_per_image')
  take('second', 'input_cost_per_second')
  take('request', 'input_cost_per_request')
  take('file_search', 'file_search_cost_per_1k_calls', true)
  take('container', containerField)
  const search = searchPrice(entry['search_context_cost_per_query'], at.in('search_context_cost_per_query'))
  const unit = entry['web_search_billing_unit'] ?? (searchedByRequest.has(String(entry['litellm_provider'])) ? 'per_prompt' : null)
  if (search !== null) each.set(unit === 'per_prompt' ? 'searched' : 'search', search)
  return each
}

/** A reply does not report how much a search returned, so there is a price only if all sizes have the same. */
function searchPrice (sizes: unknown, at: Place): Decimal | null {
  const given = isObject(sizes) ? Object.entries(sizes).filter(([, price]) => price !== null) : []
  const [price = null] = given.map(([size, each]) => readListed(each, maxEach, at.in(size)))
  return new Set(given.map(([, each]) => each)).size === 1 ? price : null
}
