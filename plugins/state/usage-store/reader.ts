/** Reports from the usage store, streamed. */
import { leaves } from '../../core/call/measures.js'
import type { LedgerRecord } from '../types.js'
import { connect } from './connection.js'
import { readUsageStore, type UsageStoreConfig } from './options.js'
import { columns, recordOf, type StoredRow } from './rows.js'

/** Fields of a record that a report may be about some values of. */
export const filters = ['group', 'key', 'model', 'protocol', 'outcome'] as const

/** A time range, and for some fields the values of which one must match. */
export interface UsageQuestion {
  /** Milliseconds since the epoch; inclusive. */
  readonly from: number
  /** Exclusive. */
  readonly to: number
  readonly wanted: Readonly<Record<typeof filters[number], readonly string[]>>
}

/** What one record, or several of one currency, add to a sum. */
export interface UsageEntry {
  readonly requests: number
  /** In the order of the leaves. */
  readonly tokens: readonly number[]
  readonly charged: number
  /** Exact decimal text; null if no part has a price. */
  readonly cost: string | null
  readonly currency: string | null
  /** Number of requests with a part that has no price. */
  readonly unpriced: number
}

/** The sum of some records of one currency, with the values that they were grouped by. */
interface StoredSum extends UsageEntry {
  readonly names: ReadonlyArray<string | null>
}

interface UsageReader {
  readonly records: (question: UsageQuestion) => AsyncGenerator<LedgerRecord[]>
  /** Sums by `group`, `key`, `model`, `protocol`, `day` and `month` of a time zone, or `label:NAME`. */
  readonly sums: (by: readonly string[], zone: string, question: UsageQuestion) => AsyncGenerator<StoredSum[]>
  readonly close: () => Promise<void>
}

/** Rejects with the client's errors. */
export async function openUsageReader (config: UsageStoreConfig): Promise<UsageReader> {
  const rules = readUsageStore(config)
  const { stream, close } = await connect(rules)
  const { schema } = rules
  return {
    records: async function * (question) {
      const where = conditions(question, 'time')
      const text = `SELECT *, cost::text AS cost, (extract(epoch FROM time) * 1000)::bigint AS ms FROM "${schema}".usage WHERE ` +
        `${where.text} ORDER BY time, id`
      for await (const rows of stream<StoredRow>(text, where.values)) yield rows.map(recordOf)
    },
    sums: async function * (by, zone, question) {
      const where = conditions(question, 'quarter')
      const values = [...where.values]
      const names = by.map((name) => dimension(name, zone, values))
      const counts = leaves.map(({ type }) => `sum(${type})`).join(', ')
      const text = `SELECT ARRAY[${names.join(', ')}]::text[] AS names, currency, sum(requests) AS requests,
        ARRAY[${counts}] AS tokens, sum(charged) AS charged, sum(cost)::text AS cost, sum(unpriced) AS unpriced
        FROM ${tableOf(schema, question)} q WHERE ${where.text} GROUP BY 1, 2`
      for await (const rows of stream<SumRow>(text, values)) yield rows.map(sumOf)
    },
    close,
  }
}

interface SumRow extends Readonly<Record<'requests' | 'charged' | 'unpriced', string>> {
  readonly names: ReadonlyArray<string | null>
  readonly tokens: readonly string[]
  readonly cost: string | null
  readonly currency: string | null
}

function sumOf ({ names, tokens, requests, charged, cost, currency, unpriced }: SumRow): StoredSum {
  return {
    names, currency, cost, requests: Number(requests), tokens: tokens.map(Number), charged: Number(charged), unpriced: Number(unpriced),
  }
}

const quarterMs = 15 * 60_000

/** The table of sums if the range begins and ends with their quarters of an hour; otherwise the records themselves. */
function tableOf (schema: string, { from, to }: UsageQuestion): string {
  const isWhole = [from, to].every((time) => !Number.isFinite(time) || time % quarterMs === 0)
  if (isWhole) return `"${schema}".usage_quarters`
  const same = columns.map(({ name }) => name === 'unpriced' ? 'unpriced::int' : name)
  return `(SELECT time AS quarter, 1 AS requests, ${same.join(', ')} FROM "${schema}".usage)`
}

const labelPrefix = 'label:'

function dimension (name: string, zone: string, values: unknown[]): string {
  const column = columnOf(name)
  if (column !== undefined) return column
  if (name.startsWith(labelPrefix)) return `labels ->> $${values.push(name.slice(labelPrefix.length))}::text`
  return `to_char(quarter AT TIME ZONE $${values.push(zone)}::text, '${name === 'day' ? 'YYYY-MM-DD' : 'YYYY-MM'}')`
}

function columnOf (field: string): string | undefined {
  return columns.find((column) => column.field === field)?.name
}

function conditions ({ from, to, wanted }: UsageQuestion, time: string): { readonly text: string, readonly values: readonly unknown[] } {
  const values: unknown[] = []
  const conditions = ['true']
  for (const [compares, bound] of [['>=', from], ['<', to]] as const) {
    if (Number.isFinite(bound)) conditions.push(`${time} ${compares} $${values.push(new Date(bound).toISOString())}::timestamptz`)
  }
  for (const name of filters) {
    const given = wanted[name]
    if (given.length > 0) conditions.push(`coalesce(${columnOf(name)}, 'null') = ANY($${values.push(given)}::text[])`)
  }
  return { text: conditions.join(' AND '), values }
}
