/** Converts a usage record to a row of the table, and back. */
import { leaves, usageBy } from '../../core/call/measures.js'
import type { Labels, TokenUsage } from '../../core/types.js'
import type { LedgerRecord } from '../types.js'

/** As the store returns it: numbers as text. */
export interface StoredRow extends Readonly<Record<keyof TokenUsage, string>>, Pick<LedgerRecord, 'id' | 'protocol' | 'model' | 'outcome'> {
  readonly ms: string
  readonly key_id: string | null
  readonly group_id: string | null
  readonly upstream_model: string | null
  readonly charged: string
  readonly cost: string | null
  readonly currency: string | null
  readonly price: string | null
  readonly service_tier: string | null
  readonly labels: Labels | null
  readonly details: Pick<LedgerRecord, 'late' | 'bill' | 'costParts' | 'lateBuckets' | 'lateBalances' | 'chargedCost'>
}

interface Column {
  readonly name: string
  /** Name of the record's field. */
  readonly field: string
  readonly type: string
}

function column (type: string, name: string, field = name): Column {
  return { name, field, type }
}

/** The columns of the table; other fields of a record are in `details`. */
export const columns: readonly Column[] = [
  column('text', 'id'),
  column('timestamptz', 'time'),
  column('text', 'key_id', 'key'),
  column('text', 'group_id', 'group'),
  column('text', 'protocol'),
  column('text', 'model'),
  column('text', 'upstream_model', 'upstreamModel'),
  column('text', 'outcome'),
  ...leaves.map(({ type: leaf }) => column('bigint', leaf)),
  column('bigint', 'charged'),
  column('numeric', 'cost'),
  column('text', 'currency'),
  column('boolean', 'unpriced'),
  column('text', 'price'),
  column('text', 'service_tier', 'serviceTier'),
  column('jsonb', 'labels'),
  column('jsonb', 'details'),
]

/**
 * Rows as JSON text, which the store parses itself. Zero bytes and lone surrogates, which it cannot store, become unknown characters,
 * unescaped: a database without an encoding takes the bytes of each, and no escape of it.
 */
export function rowsText (records: readonly LedgerRecord[]): string {
  return JSON.stringify(records.map(rowOf)).replace(
    /\\(?:u0000|ud[89a-f][0-9a-f]{2}|.)/g, (escape) => escape.length > 2 ? '\ufffd' : escape
  )
}

function rowOf ({ time, bill, costParts, late, lateBuckets, lateBalances, chargedCost, ...rest }: LedgerRecord): object {
  const details = { bill, costParts, late, lateBuckets, lateBalances, chargedCost }
  return { ...rest, time: new Date(time).toISOString(), unpriced: isUnpriced(costParts), details }
}

export function isUnpriced (parts: LedgerRecord['costParts']): boolean {
  for (const name in parts) if (parts[name] === null) return true
  return false
}

/** The record as it was written; a cost loses the zeros at its end. */
export function recordOf (row: StoredRow): LedgerRecord {
  const { id, protocol, model, outcome, details, labels, price, currency } = row
  return {
    id,
    time: Number(row.ms),
    key: row.key_id,
    group: row.group_id,
    protocol,
    model,
    ...row.upstream_model === null ? null : { upstreamModel: row.upstream_model },
    outcome,
    ...usageBy((leaf) => Number(row[leaf])),
    charged: Number(row.charged),
    ...currency === null ? null : { cost: row.cost, currency },
    ...price === null ? null : { price },
    ...row.service_tier === null ? null : { serviceTier: row.service_tier },
    ...labels === null ? null : { labels },
    ...details,
  }
}
