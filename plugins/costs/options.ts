import { one, type Decimal } from '../core/money/decimal.js'
import { checkChoice, checkOptions, OptionError } from '../core/config/options.js'
import { PriceTable } from './price-table.js'
import { readFactor } from './read-row.js'

/** Prices of a million tokens, by leaf or kind of content, such as `{ input: 1.25, cache_read: 0.125, output: 10 }`. */
export type PriceOptions = Readonly<Record<string, unknown>>

export interface CostsOptions {
  /**
   * Of every price, by ISO 4217.
   * @defaultValue `USD`
   */
  currency?: string
  /**
   * Price lists, of this package's form or the community's `model_prices_and_context_window.json`; a later one wins.
   * @defaultValue `[]`
   */
  files?: readonly string[]
  /**
   * Prices by model name, or glob of names; they win over files. One row, or several that follow each other in time.
   * @defaultValue `{}`
   */
  models?: Readonly<Record<string, PriceOptions | readonly PriceOptions[]>>
  /**
   * Requests for a model without a price: `refuse` them with 403 `model_not_priced`.
   * @defaultValue `allow`, and `refuse` where a budget is in money
   */
  unpriced?: 'allow' | 'refuse'
  /**
   * Sends the cost along with replies that are not streamed, as `x-llm-gateway-cost`. Such a reply waits until it is whole.
   * @defaultValue false
   */
  header?: boolean
  /**
   * What the prices of an upstream are times those of the lists, by its name.
   * @defaultValue 1 each
   */
  factors?: Readonly<Record<string, number>>
}

export interface CostRules {
  readonly table: PriceTable
  readonly header: boolean
  readonly factorOf: (upstream: string | null) => Decimal
}

/** Throws `LLM_GATEWAY_OPTION`, or `LLM_GATEWAY_PRICES` where a price list is wrong. */
export function readOptions (options: CostsOptions): CostRules {
  checkOptions('costs', options, {
    currency: 'a string', files: 'anything', models: 'an object', unpriced: 'anything', header: 'a boolean', factors: 'an object',
  })
  const { currency, files = [], models, unpriced, header = false, factors = {} } = options
  if (!Array.isArray(files) || files.some((file) => typeof file !== 'string')) {
    throw new OptionError('costs.files', 'must be a list of files')
  }
  checkChoice('costs.unpriced', unpriced, ['allow', 'refuse'])
  const read = new Map(Object.entries(factors).map(([upstream, factor]) => [upstream, readFactor(factor, [], (_, message) => {
    throw new OptionError(`upstreams.${upstream}.priceFactor`, message)
  })]))
  return {
    table: new PriceTable({ currency, files, models }),
    header,
    factorOf: read.size === 0 ? () => one : (upstream) => read.get(upstream ?? '') ?? one,
  }
}
