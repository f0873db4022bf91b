/** Sums for programs and for people. */
import { table } from '../table.js'
import type { Dimension, Sum, Sums } from './sums.js'

/** One JSON object a sum; the leaves of the tokens are disjoint, `total` is their sum. */
export function sumLines (sums: Sums, by: readonly Dimension[]): string[] {
  return sums.sorted.map(({ names, requests, tokens, total, charged }) => {
    const named = Object.fromEntries(by.map((dimension, at) => [dimension, names[at]]))
    return JSON.stringify({ ...named, requests, ...tokens, total, charged })
  })
}

const parts: ReadonlyArray<readonly [title: string, leaves: readonly string[]]> = [
  ['input', ['input', 'tool_input']],
  ['cache read', ['cache_read']],
  ['cache write', ['cache_write', 'cache_write_5m', 'cache_write_1h']],
  ['output', ['output']],
  ['reasoning', ['reasoning']],
]

/** A table with a last line for all. */
export function sumTable (sums: Sums, by: readonly Dimension[]): string[] {
  const numbers = ['requests', ...parts.map(([title]) => title), 'total', 'charged'].map((title) => ({ title, numeric: true }))
  const rows = sums.sorted.map((sum) => [...sum.names.map((name) => name ?? '-'), ...cells(sum)])
  const last = [...by.map((_, at) => at === 0 ? 'all' : ''), ...cells(sums.total)]
  return table([...by.map((title) => ({ title })), ...numbers], [...rows, last])
}

function cells ({ requests, tokens, total, charged }: Sum): string[] {
  const shown = parts.map(([, leaves]) => leaves.reduce((sum, leaf) => sum + Number(tokens[leaf]), 0))
  return [requests, ...shown, total, charged].map((value) => value.toLocaleString('en-US'))
}
