/** The cost in a ledger record, and what is needed to work it out again with other prices. Only fields that apply are set. */
import type { Served } from '../core/money/cost.js'
import { labelsOf } from '../core/config/labels.js'
import type { ModelCall } from '../core/call/model-call.js'
import type { LedgerBill, LedgerCost } from '../core/money/ledger.js'

/** While it is made. */
export type Writable<T> = { -readonly [Name in keyof T]: T[Name] }

/** A caller may have made a model's name up, at any length. */
export const maxModelLength = 128

export function addCost (record: Writable<LedgerCost>, llm: ModelCall): void {
  const { cost, usage: { served } } = llm
  if (cost !== null) {
    const { amount, currency, parts, price } = cost.exact
    record.cost = amount
    record.currency = currency
    record.costParts = Object.fromEntries(parts.map((part) => [part.name, part.amount]))
    if (price !== null) record.price = price
  }
  if (served !== null && served.tier !== null) record.serviceTier = served.tier
  const labels = labelsOf(llm)
  if (labels !== null) record.labels = labels
}

export function billOf ({ arrivedAt, model, usage: { responseModel, served, modalities }, cost }: ModelCall): LedgerBill {
  const bill: Writable<LedgerBill> = { startedAt: arrivedAt }
  if (responseModel !== null && responseModel !== model) bill.model = responseModel.slice(0, maxModelLength)
  if (cost !== null && cost.exact.factor !== '1') bill.factor = cost.exact.factor
  if (modalities !== null) bill.modalities = modalities
  if (served !== null) addServed(bill, served)
  return bill
}

function addServed (bill: Writable<LedgerBill>, { speed, region, counts, tools, statedCost }: Served): void {
  if (speed !== null) bill.speed = speed
  if (region !== null) bill.region = region
  if (Object.keys(counts).length > 0) bill.counts = counts
  if (tools !== null) bill.tools = tools
  if (statedCost !== null) bill.statedCost = statedCost
}
