/** The most that a request may cost, estimated before it is sent. */
import { leaves, tokensOf } from '../core/call/measures.js'
import type { ModelCall } from '../core/call/model-call.js'
import { ratesFor } from './bill.js'
import { add, isLess, one, times, timesCount, zero, type Decimal } from '../core/money/decimal.js'
import { kindRates, type PriceRow, type Rates, type Sheet } from './price-row.js'
import type { TokenUsage } from '../core/types.js'
import { isObject, plainText, valueAt, type JsonObject } from '../core/body/json-object.js'
import type { ServedRules, ToldAt } from '../protocols/served-rules.js'

/** How the request asks to be served, in each spelling; empty if it does not say, or asks for the common way. */
interface Asked {
  readonly tiers: readonly string[]
  readonly speeds: readonly string[]
  readonly regions: readonly string[]
  /** Number of answers. */
  readonly choices: number
}

/** So that costs stay exact. A larger number must not count as one, as a server may take it for its own maximum. */
const maxChoices = 1_000_000
const none: readonly never[] = []
const nothingAsked: Asked = { tiers: none, speeds: none, regions: none, choices: 1 }
/** Only for requests that asked for something: their bodies are released when they are sent. */
const remembered = new WeakMap<ModelCall, Asked>()

/** Rate names that tokens of a direction may have. */
export const namesOf = {
  input: namesIn('input'),
  output: namesIn('output'),
}

function namesIn (direction: 'input' | 'output'): string[] {
  const own = leaves.filter((leaf) => leaf.direction === direction).map(({ type }) => type)
  return [...own, ...kindRates.filter((name) => name.startsWith('output_') === (direction === 'output'))]
}

/** How a row may charge a request. */
export interface Ways {
  readonly row: PriceRow
  /** The common one first, then those that its parameters may lead to. */
  readonly sheets: readonly Sheet[]
  /** The largest factor on tokens, and the one of the upstream. */
  readonly factor: Decimal
  readonly upstream: Decimal
  /** Price of the images that it asks for, by the piece; null if they have none. */
  readonly images: Decimal | null
}

/** Null if the row has no price for what is asked. */
export function waysOf (row: PriceRow, llm: ModelCall, upstream: Decimal): Ways | null {
  const asked = askedOf(llm)
  const images = imagesCost(row.each.get('image'), llm, asked)
  // Hardly any request asks for something special.
  if (asked === nothingAsked) return { row, sheets: [row.sheet], factor: one, upstream, images }
  const sheets = [row.sheet]
  let factor = one
  for (const name of asked.regions) {
    const regional = row.regions.get(name)
    if (regional === undefined) return null
    factor = times(factor, regional)
  }
  for (const [names, variants] of [[asked.tiers, row.tiers], [asked.speeds, row.speeds]] as const) {
    for (const name of names) {
      const variant = variants.get(name)
      if (variant === undefined) return null
      if ('sheet' in variant) sheets.push(variant.sheet)
      else if (isLess(one, variant.factor)) factor = times(factor, variant.factor)
    }
  }
  return { row, sheets, factor: isLess(factor, one) ? one : factor, upstream, images }
}

/**
 * Null if one of the ways has no price. Providers may serve a request as if it had asked for nothing: the most expensive way counts.
 * `tools`: what the provider's tools may cost. `told`: what a reply that broke off told of its tokens.
 */
export function estimateOf (
  ways: Ways, inputTokens: number, outputTokens: number, tools = zero, told: TokenUsage | null = null
): Decimal | null {
  const { row, sheets, factor, upstream } = ways
  let most = zero
  for (const sheet of sheets) {
    const made = madeCost(tokensCost(sheet, inputTokens, outputTokens, told), ways)
    if (made === null) return null
    most = dearer(most, made)
  }
  return times(add(add(times(most, factor), row.each.get('request') ?? zero), tools), upstream)
}

export function dearer (a: Decimal | null, b: Decimal): Decimal {
  return a === null || isLess(a, b) ? b : a
}

function tokensCost (sheet: Sheet, inputTokens: number, outputTokens: number, told: TokenUsage | null): Decimal | null {
  const rates = ratesFor(sheet, inputTokens)
  const dearest = dearestOf(rates)
  const { input } = dearest
  const output = outputTokens === 0 ? zero : dearest.output
  if (input === null || output === null) return null
  return add(told === null ? timesCount(input, inputTokens) : inputCost(rates, input, inputTokens, told), timesCount(output, outputTokens))
}

/** Told tokens at the rate of their leaf, or of its dearest kind, as most may come from a cache; the rest at the dearest of all. */
function inputCost (rates: Rates, dearest: Decimal, inputTokens: number, told: TokenUsage): Decimal {
  let cost = timesCount(dearest, Math.max(0, inputTokens - tokensOf(told, 'input')))
  for (const { type, direction } of leaves) {
    const rate = dearestAmong(rates, namesOf.input.filter((name) => name.startsWith(type))) ?? dearest
    if (direction === 'input') cost = add(cost, timesCount(rate, told[type]))
  }
  return cost
}

/** A reply reports its images as tokens, or by the piece. */
function madeCost (tokens: Decimal | null, { row, images }: Ways): Decimal | null {
  if (tokens === null) return row.sheet.rates.size > 0 ? null : images
  return images === null ? tokens : dearer(tokens, images)
}

function imagesCost (each: Decimal | undefined, { endpoint }: ModelCall, { choices }: Asked): Decimal | null {
  if (each === undefined || endpoint.output === null || endpoint.output.choices.length === 0) return null
  return timesCount(each, choices)
}

/** Maximum price of a token; null if some or all have none. */
interface Dearest {
  readonly input: Decimal | null
  readonly output: Decimal | null
}

/** A list does not change after it was read. */
const found = new WeakMap<Rates, Dearest>()

export function dearestOf (rates: Rates): Dearest {
  const known = found.get(rates)
  if (known !== undefined) return known
  const dearest = { input: rates.has('input') ? dearestAmong(rates, namesOf.input) : null, output: dearestAmong(rates, namesOf.output) }
  found.set(rates, dearest)
  return dearest
}

function dearestAmong (rates: Rates, names: readonly string[]): Decimal | null {
  return names.flatMap((name) => rates.get(name) ?? []).reduce<Decimal | null>(dearer, null)
}

export function asksForNothing (llm: ModelCall): boolean {
  return askedOf(llm) === nothingAsked
}

function askedOf (llm: ModelCall): Asked {
  const { body: { json }, endpoint } = llm
  const rules = endpoint.usage?.served
  if (rules === undefined || !isObject(json)) return remembered.get(llm) ?? nothingAsked
  const tiers = wordsIn(llm, json, rules.tier, rules)
  const speeds = wordsIn(llm, json, rules.speed, rules)
  const regions = wordsIn(llm, json, rules.region, rules)
  const choices = choicesIn(json, endpoint)
  if (tiers === none && speeds === none && regions === none && choices === 1) return nothingAsked
  const asked = { tiers, speeds, regions, choices }
  remembered.set(llm, asked)
  return asked
}

function choicesIn (json: JsonObject, { output }: ModelCall['endpoint']): number {
  let most = 1
  for (const path of output?.choices ?? none) {
    const choices = Number(plainText(valueAt(json, path)))
    if (choices > most) most = Math.min(Math.ceil(choices), maxChoices)
  }
  return most
}

function wordsIn ({ request }: ModelCall, json: JsonObject, { asked, askedBy }: ToldAt, { words }: ServedRules): readonly string[] {
  let found: readonly string[] = none
  for (const field of asked) found = withWord(found, json[field], words)
  return askedBy === null ? found : withWord(found, request?.headers[askedBy], words)
}

/** JSON of protocol buffers may have the number of a word in its place: one that no price list has. */
function withWord (found: readonly string[], value: unknown, words: ServedRules['words']): readonly string[] {
  const word = plainText(value ?? 'standard').toLowerCase()
  const known = words.get(word) ?? word
  return known === 'standard' ? found : [...found, known]
}
