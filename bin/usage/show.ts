/** Prints sums for programs and for people. */
import { decimalText, type Decimal } from '../../plugins/core/money/decimal.js'
import { leaves } from '../../plugins/core/call/measures.js'
import { shown, table } from '../table.js'
import type { Dimension } from '../sums/dimensions.js'
import { costText, type Sum, type Sums } from '../sums/sums.js'

type Costs = ReadonlyMap<string, Decimal>

/** One JSON object per sum; the leaves of the tokens are disjoint, `total` is their sum. Costs are decimal texts, by currency. */
export function sumLines (sums: Sums, by: readonly Dimension[]): string[] {
  return sums.sorted.map(({ names, requests, tokens, total, charged, costs, repriced, unpriced }) => {
    const named = Object.fromEntries(by.map(({ name }, at) => [name, names[at]]))
    return JSON.stringify({
      ...named, requests, ...tokens, total, charged, cost: texts(costs), ...sums.reprices && { repriced: texts(repriced) }, unpriced,
    })
  })
}

function texts (costs: Costs): Record<string, string> {
  return Object.fromEntries([...costs].map(([currency, amount]) => [currency, decimalText(amount)]))
}

/** RFC 4180, with a header line. */
export function sumCsv (sums: Sums, by: readonly Dimension[]): string[] {
  const titles = [
    ...by.map(({ name }) => textCell(name)), 'requests', ...leaves.map(({ type }) => type), 'total', 'charged', 'cost',
    ...sums.reprices ? ['repriced'] : [], 'currency', 'unpriced',
  ]
  const rows = sums.sorted.flatMap(({ names, requests, tokens, total, charged, costs, repriced, unpriced }) => {
    const numbers = [requests, ...leaves.map(({ type }) => tokens[type]), total, charged].map(String)
    const currencies = [...new Set([...costs.keys(), ...repriced.keys()])]
    // One line for each currency, so that currencies are not added up; requests are counted in the first line only.
    return (currencies.length === 0 ? [''] : currencies).map((currency, at) => [
      ...names.map((name) => textCell(name ?? '')),
      ...at === 0 ? numbers : numbers.map(() => ''),
      amountIn(costs, currency),
      ...sums.reprices ? [amountIn(repriced, currency)] : [],
      currency,
      at === 0 ? String(unpriced) : '',
    ])
  })
  return [titles, ...rows].map((cells) => cells.join(','))
}

function amountIn (costs: Costs, currency: string): string {
  const amount = costs.get(currency)
  return amount === undefined ? '' : decimalText(amount)
}

/** Callers may invent model names: a text that a spreadsheet would take for a formula is marked as text. */
function textCell (text: string): string {
  const safe = shown(text).replace(/^[=+\-@＝＋－＠]/, "'$&")
  return /[",]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

const parts: ReadonlyArray<readonly [title: string, leaves: readonly string[]]> = [
  ['input', ['input', 'tool_input']],
  ['cache read', ['cache_read']],
  ['cache write', ['cache_write', 'cache_write_5m', 'cache_write_1h']],
  ['output', ['output']],
  ['reasoning', ['reasoning']],
]

/** A table with a last line for the total. */
export function sumTable (sums: Sums, by: readonly Dimension[]): string[] {
  const titles = [
    'requests', ...parts.map(([title]) => title), 'total', 'charged', 'cost', ...sums.reprices ? ['repriced'] : [], 'unpriced',
  ]
  const rows = sums.sorted.map((sum) => [...sum.names.map((name) => name ?? '-'), ...cells(sum, sums.reprices)])
  const last = [...by.map((_, at) => at === 0 ? 'all' : ''), ...cells(sums.total(by.length), sums.reprices)]
  return table(
    [...by.map(({ name }) => ({ title: name })), ...titles.map((title) => ({ title, numeric: true }))],
    by.length === 0 ? [last] : [...rows, last]
  )
}

function cells ({ requests, tokens, total, charged, costs, repriced, unpriced }: Sum, reprices: boolean): string[] {
  const shown = parts.map(([, names]) => names.reduce((sum, leaf) => sum + Number(tokens[leaf]), 0))
  const numbers = [requests, ...shown, total, charged].map((value) => value.toLocaleString('en-US'))
  return [...numbers, costText(costs) || '-', ...reprices ? [costText(repriced) || '-'] : [], unpriced.toLocaleString('en-US')]
}
