/** What a request may cost at most, told before it is sent. */
import { leaves } from '../core/measures.js'
import type { ModelCall } from '../core/model-call.js'
import { ratesFor } from './cost-of.js'
import { add, isLess, one, times, timesCount, zero, type Decimal } from '../core/decimal.js'
import { kinds, type PriceRow, type Rates, type Sheet } from './price-row.js'
import { isObject, type JsonObject } from '../core/json-object.js'
import type { ServedRules } from '../protocols/served-rules.js'

/** How the request asks to be served; null where it does not say, or asks for what is common. */
interface Asked {
  readonly tier: string | null
  readonly speed: string | null
  readonly region: string | null
}

const nothingAsked: Asked = { tier: null, speed: null, region: null }

const namesOf = {
  input: [...leaves.filter(({ direction }) => direction === 'input').map(({ type }) => type), ...kinds.map((kind) => `input_${kind}`)],
  output: [...leaves.filter(({ direction }) => direction === 'output').map(({ type }) => type), ...kinds.map((kind) => `output_${kind}`)],
}

/**
 * Null where the row has no price for what is asked. Providers may serve a request as if it had asked for nothing: the dearer counts.
 * `tools`: what the provider's own may cost.
 */
export function estimateOf (
  row: PriceRow, llm: ModelCall, inputTokens: number, outputTokens: number, upstream: Decimal, tools = zero
): Decimal | null {
  const asked = askedOf(llm)
  let made = madeCost(tokensCost(row.sheet, inputTokens, outputTokens), row, llm)
  let factor = one
  // Hardly any request asks for one.
  if (asked !== nothingAsked) {
    const ways = waysOf(row, asked)
    if (ways === null) return null
    for (const sheet of ways.sheets) made = dearer(made, madeCost(tokensCost(sheet, inputTokens, outputTokens), row, llm))
    factor = ways.factor
  }
  if (made === null) return null
  return times(add(add(times(made, factor), row.each.get('request') ?? zero), tools), upstream)
}

/** The lists beside the common one that a request may get by what it asks for, and the largest factor. */
interface Ways {
  readonly sheets: readonly Sheet[]
  readonly factor: Decimal
}

/** Null where one of them is not known. */
function waysOf ({ tiers, speeds, regions }: PriceRow, asked: Asked): Ways | null {
  const sheets: Sheet[] = []
  let factor = asked.region === null ? one : regions.get(asked.region) ?? one
  for (const [name, variants] of [[asked.tier, tiers], [asked.speed, speeds]] as const) {
    if (name === null) continue
    const variant = variants.get(name)
    if (variant === undefined) return null
    if ('sheet' in variant) sheets.push(variant.sheet)
    else if (isLess(one, variant.factor)) factor = times(factor, variant.factor)
  }
  return { sheets, factor: isLess(factor, one) ? one : factor }
}

/** Null where one of them is not known. */
function dearer (a: Decimal | null, b: Decimal | null): Decimal | null {
  if (a === null || b === null) return null
  return isLess(a, b) ? b : a
}

function tokensCost (sheet: Sheet, inputTokens: number, outputTokens: number): Decimal | null {
  const dearest = dearestOf(ratesFor(sheet, inputTokens))
  const { input } = dearest
  const output = outputTokens === 0 ? zero : dearest.output
  if (input === null || output === null) return null
  return add(timesCount(input, inputTokens), timesCount(output, outputTokens))
}

/** A reply tells its pictures by their tokens, or by the piece. */
function madeCost (tokens: Decimal | null, { each, sheet }: PriceRow, llm: ModelCall): Decimal | null {
  const images = imagesCost(each.get('image'), llm)
  if (tokens === null) return sheet.rates.size > 0 ? null : images
  return images === null ? tokens : dearer(tokens, images)
}

function imagesCost (each: Decimal | undefined, { body: { json }, endpoint }: ModelCall): Decimal | null {
  const [path] = endpoint.output?.choices ?? []
  if (each === undefined || path === undefined) return null
  const asked = isObject(json) ? json[path.join('.')] : undefined
  return timesCount(each, typeof asked === 'number' && Number.isSafeInteger(asked) && asked > 1 ? asked : 1)
}

/** What a token costs at most; null where some or all have no price. */
interface Dearest {
  readonly input: Decimal | null
  readonly output: Decimal | null
}

/** A list that was read does not change. */
const found = new WeakMap<Rates, Dearest>()

function dearestOf (rates: Rates): Dearest {
  const known = found.get(rates)
  if (known !== undefined) return known
  const dearest = { input: rates.has('input') ? dearestAmong(rates, namesOf.input) : null, output: dearestAmong(rates, namesOf.output) }
  found.set(rates, dearest)
  return dearest
}

function dearestAmong (rates: Rates, names: readonly string[]): Decimal | null {
  return names.flatMap((name) => rates.get(name) ?? []).reduce<Decimal | null>(
    (most, rate) => most === null || isLess(most, rate) ? rate : most, null
  )
}

function askedOf ({ body: { json }, endpoint }: ModelCall): Asked {
  const rules = endpoint.usage?.served
  if (rules === undefined || !isObject(json)) return nothingAsked
  const tier = wordAt(json, rules.tier.asked, rules)
  const speed = wordAt(json, rules.speed.asked, rules)
  const region = wordAt(json, rules.region.asked, rules)
  return tier === null && speed === null && region === null ? nothingAsked : { tier, speed, region }
}

function wordAt (json: JsonObject, field: string | null | undefined, { words }: ServedRules): string | null {
  const value = field == null ? undefined : json[field]
  if (typeof value !== 'string') return null
  const word = value.toLowerCase()
  const known = words[word] ?? word
  return known === 'standard' ? null : known
}
