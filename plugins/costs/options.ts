import { one, type Decimal } from '../core/money/decimal.js'
import { checkChoice, checkOptions, OptionError } from '../core/config/options.js'
import { Place } from './place.js'
import { PriceTable } from './price-table.js'
import { readFactor } from './read-row.js'

/** Prices per million tokens, by leaf or kind of content, such as `{ input: 1.25, cache_read: 0.125, output: 10 }`. */
export type PriceOptions = Readonly<Record<string, unknown>>

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
