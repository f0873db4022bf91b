import { isDeepStrictEqual } from 'node:util'
import { one, readDecimal } from '../../plugins/core/money/decimal.js'
import { leaves, leafTokens } from '../../plugins/core/call/measures.js'
import { priceBill } from '../../plugins/costs/bill.js'
import type { PriceTable } from '../../plugins/costs/price-table.js'
import { matchOf, withTools } from '../../plugins/costs/pricing.js'
import type { LedgerRecord } from '../../plugins/state/types.js'
import { isUnpriced } from '../../plugins/state/usage-store/rows.js'
import type { UsageEntry } from '../../plugins/state/usage-store/reader.js'
import type { RecordCost } from '../sums/sums.js'

/** What a record adds to a sum. */
export function entryOf (record: LedgerRecord): UsageEntry {
  const { charged, cost = null, currency = null, costParts } = record
  return { requests: 1, tokens: leafTokens(record), charged, cost, currency, unpriced: Number(isUnpriced(costParts)) }
}

/** What a record would have cost with other price lists, at the prices of the time at which its request started. Null for nothing. */
export function repriced (table: PriceTable, record: LedgerRecord): RecordCost | null {
  const { model, upstreamModel = null, serviceTier = null, time, bill } = record
  const startedAt = bill?.startedAt ?? time
  const match = matchOf(table, { reply: bill?.model ?? model, asked: model, alias: upstreamModel }, startedAt)
  const served = {
    tier: serviceTier,
    speed: bill?.speed ?? null,
    region: bill?.region ?? null,
    counts: bill?.counts ?? {},
    tools: bill?.tools ?? null,
    statedCost: null,
  }
  const usage = leaves.some(({ type }) => record[type] > 0) ? record : null
  const factor = readDecimal(bill?.factor ?? '1') ?? one
  const row = withTools(table, match?.row ?? null, served, startedAt)
  const priced = priceBill({ usage, modalities: kindsOf(bill), served, factor }, row)
  return priced === null ? null : { amount: priced.total, currency: table.currency, unpriced: priced.unpriced }
}

/** In a live request, kinds of tools' output are distinguished by their position in the list; here, by being equal. */
function kindsOf (bill: LedgerRecord['bill']): NonNullable<NonNullable<LedgerRecord['bill']>['modalities']> | null {
  const tools = [...bill?.tools?.modalities ?? []]
  if (bill?.modalities === undefined || tools.length === 0) return bill?.modalities ?? null
  return bill.modalities.filter((kind) => {
    const at = tools.findIndex((tool) => isDeepStrictEqual(tool, kind))
    if (at !== -1) tools.splice(at, 1)
    return at === -1
  })
}
