import { one, type Decimal } from '../core/money/decimal.js'
import { checkChoice, checkOptions, OptionError } from '../core/config/options.js'
import type { TokenUsage } from '../core/types.js'
import { Place } from './place.js'
import { PriceTable } from './price-table.js'
import { readFactor } from './read-row.js'

/** Prices of a million tokens of each leaf; of a kind of content, by default that of its leaf. */
type RateOptions = Readonly<Partial<Record<
  keyof TokenUsage | `${'input' | 'cache_read' | 'output'}_${'audio' | 'image' | 'video'}`, number>>>

interface SheetOptions extends RateOptions {
  /** All prices of a request with more tokens of input; `inclusive`: as many or more. @defaultValue none */
  readonly above?: ReadonlyArray<RateOptions & { readonly inputTokens: number, readonly inclusive?: boolean }>
}

type VariantOptions = Readonly<Record<string, SheetOptions | number>>

/**
 * Prices of a model, such as `{ input: 1.25, cache_read: 0.125, output: 10, reasoning: 10 }`. A leaf that is left out has no price. The
 * fields are told in docs/costs.md.
 */
export interface PriceOptions extends SheetOptions {
  /** By service tier: prices of its own, or a factor. @defaultValue none */
  readonly tiers?: VariantOptions
  /** The same by speed. @defaultValue none */
  readonly speeds?: VariantOptions
  /** Factors by region. @defaultValue 1 each */
  readonly regions?: Readonly<Record<string, number>>
  /** Prices of one. @defaultValue none */
  readonly each?: Readonly<Partial<Record<'search' | 'searched' | 'file_search' | 'container' | 'image' | 'second' | 'request', number>>>
  /** Prices of tokens that tools used with models of their own. @defaultValue none */
  readonly tools?: SheetOptions
  /** When it begins to be valid: `2027-01-01`, or a date and time. @defaultValue always */
  readonly from?: string
  /** When it ends. @defaultValue never */
  readonly until?: string
  /** If it is told, that of all prices. @defaultValue none */
  readonly currency?: string
}

export interface CostsOptions {
  /**
   * Currency of all prices, a code of ISO 4217.
   * @defaultValue `USD`
   */
  currency?: string
  /**
   * Price lists, in this package's form or the community's `model_prices_and_context_window.json`; later ones win.
   * @defaultValue `[]`
   */
  files?: readonly string[]
  /**
   * Prices by model name, or glob of names; they win over files. One row, or several that follow each other in time.
   * @defaultValue `{}`
   */
  models?: Readonly<Record<string, PriceOptions | readonly PriceOptions[]>>
  /**
   * What to do with requests for a model without a price: `refuse` answers 403 `model_not_priced`.
   * @defaultValue `allow`, and `refuse` where a budget is in money
   */
  unpriced?: 'allow' | 'refuse'
  /**
   * Adds the cost to replies that are not streamed, as the header `x-llm-gateway-cost`. Such a reply is held until it is complete.
   * @defaultValue false
   */
  header?: boolean
  /**
   * Price factors by upstream name, relative to the lists.
   * @defaultValue 1 each
   */
  factors?: Readonly<Record<string, number>>
}

interface CostRules {
  readonly table: PriceTable
  readonly header: boolean
  readonly factorOf: (upstream: string | null) => Decimal
}

/** Throws `LLM_GATEWAY_OPTION`, or `LLM_GATEWAY_PRICES` if a price list is wrong. */
export function readOptions (options: CostsOptions): CostRules {
  checkOptions('costs', options, {
    'a string': ['currency'],
    anything: ['files', 'unpriced'],
    'an object': ['models', 'factors'],
    'a boolean': ['header'],
  })
  const { currency, files = [], models, unpriced, header = false, factors = {} } = options
  if (!Array.isArray(files) || files.some((file) => typeof file !== 'string')) {
    throw new OptionError('costs.files', 'must be a list of files')
  }
  checkChoice('costs.unpriced', unpriced, ['allow', 'refuse'])
  const refuse = (path: string, message: string): never => { throw new OptionError(path, message) }
  const read = new Map(Object.entries(factors).map(([upstream, factor]) => {
    return [upstream, readFactor(factor, new Place(`upstreams.${upstream}.priceFactor`, refuse))]
  }))
  return {
    table: new PriceTable({ currency, files, models }),
    header,
    factorOf: read.size === 0 ? () => one : (upstream) => read.get(upstream ?? '') ?? one,
  }
}
