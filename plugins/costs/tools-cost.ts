/** The most that the provider's tools which a request allows may cost, estimated before it is sent. */
import { add, timesCount, zero, type Decimal } from '../core/money/decimal.js'
import { isObject, plainText, valueAt, type JsonObject } from '../core/body/json-object.js'
import type { ModelCall } from '../core/call/model-call.js'
import { largestOf, paidTools } from '../core/money/paid-tools.js'
import type { OutputFields, PaidTool } from '../protocols/types.js'
import type { PriceRow } from './price-row.js'

/** No provider lets one request use a tool more often. */
const maxUses = 1_000_000

const none: readonly never[] = []

/**
 * Uses are counted as the request limits them; one if it does not. A tool without a price costs nothing. Each is counted once for all rows:
 * a body has room for a thousand models and thousands of tools.
 */
export function toolsCostOf ({ body: { json }, endpoint: { output } }: ModelCall): (row: PriceRow) => Decimal {
  const counted = new Map<PaidTool, number>()
  const usesOf = (tool: PaidTool): number => {
    const uses = counted.get(tool) ?? mostUses(tool, json, output?.toolsWithin)
    counted.set(tool, uses)
    return uses
  }
  return ({ each }) => {
    let cost = zero
    for (const tool of output?.tools ?? none) {
      const once = tool.unit === 'search' ? each.get('searched') : undefined
      const price = once ?? each.get(tool.unit)
      const uses = price === undefined ? 0 : usesOf(tool)
      if (price !== undefined && uses > 0) cost = add(cost, timesCount(price, once === undefined ? uses : 1))
    }
    return cost
  }
}

function mostUses (tool: PaidTool, json: unknown, within: OutputFields['toolsWithin']): number {
  const { most, fields = none, sizes = none } = tool
  const forAll = countAt(json, most)
  const sizeOf = (entry: JsonObject): number => largestOf(sizes.map((path) => valueAt(entry, path)))
  const asked = fields.filter((field) => Boolean(valueAt(json, [field]))).length
  return paidTools(json, tool, within).reduce((uses, entry) => uses + (countAt(entry, most) ?? forAll ?? 1) * sizeOf(entry), asked)
}

function countAt (value: unknown, field: string | null): number | null {
  const count = Math.min(Number(plainText(field !== null && isObject(value) ? value[field] : null)), maxUses)
  return Number.isInteger(count) && count > 0 ? count : null
}
