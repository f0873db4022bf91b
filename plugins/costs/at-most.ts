/** What a request may have cost if some of its tokens have no price. Not its cost: only budgets count it. */
import { add, billionthsOf, times, timesCount, zero, type Decimal } from '../core/money/decimal.js'
import { tokensOf } from '../core/call/measures.js'
import type { ModelCall } from '../core/call/model-call.js'
import { linesOf, ratesFor } from './bill.js'
import { dearer, dearestOf, namesOf, waysOf, type Ways } from './estimate.js'
import { matchOf, namesIn, withTools } from './pricing.js'
import type { PriceTable } from './price-table.js'

/**
 * See `Pricing.atMost`. Tokens with a price keep it; units charged by the piece without a price add nothing, because nothing is known of
 * them. `factor`: of the upstream.
 */
export function atMost (table: PriceTable, llm: ModelCall, factor: Decimal): number | null {
  const { tokens: usage, modalities, served } = llm.usage
  const row = withTools(table, matchOf(table, namesIn(llm), llm.arrivedAt)?.row ?? null, served, llm.arrivedAt)
  const ways = row === null ? null : waysOf(row, llm, factor)
  if (ways === null) return null
  const tools = dearestOf(ways.row.tools.rates)
  const { total, parts } = linesOf({ usage, modalities, served, factor }, row)
  const inputTokens = usage === null ? 0 : tokensOf(usage, 'input')
  let most = total ?? zero
  for (const { name, units, amount } of parts) {
    const direction = amount === null ? directionOf(name) : null
    if (direction === null) continue
    const rate = (name.startsWith('tools.') ? tools[direction] : null) ?? dearestIn(ways, direction, inputTokens)
    if (rate === null) return null
    most = add(most, times(timesCount(rate, units), times(ways.factor, factor)))
  }
  return billionthsOf(most)
}

/** Null for a name that is not of tokens. */
function directionOf (name: string): 'input' | 'output' | null {
  const rate = name.replace(/^tools[.]/, '')
  if (namesOf.input.includes(rate)) return 'input'
  return namesOf.output.includes(rate) ? 'output' : null
}

function dearestIn ({ sheets }: Ways, direction: 'input' | 'output', inputTokens: number): Decimal | null {
  return sheets.reduce<Decimal | null>((most, sheet) => {
    const rate = dearestOf(ratesFor(sheet, inputTokens))[direction]
    return rate === null ? most : dearer(most, rate)
  }, null)
}
