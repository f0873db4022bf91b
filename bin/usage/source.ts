/** Where the usage of a report comes from. */
import type { LedgerRecord } from '../../plugins/state/types.js'
import type { Calendar } from './calendar.js'
import type { Dimension } from './dimensions.js'
import type { Sums } from './sums.js'

export const filters = ['group', 'key', 'model', 'protocol', 'outcome'] as const

/** Each filter that is given must hold; of several values any will do. */
export type Wanted = Readonly<Record<typeof filters[number], readonly string[]>>

export interface Question {
  /** Milliseconds since the epoch; inclusive. */
  readonly from: number
  /** Exclusive. */
  readonly to: number
  readonly wanted: Wanted
}

export interface Source {
  /** All records, some at a time. */
  readonly records: (question: Question) => AsyncIterable<LedgerRecord[]>
  /** Their sums, without building a record. */
  readonly addTo: (sums: Sums, by: readonly Dimension[], calendar: Calendar, question: Question) => Promise<void>
  readonly close: () => Promise<void>
}

type Named = Readonly<Record<typeof filters[number], string | null>>

export function keeps (wanted: Wanted): (named: Named) => boolean {
  const given = filters.filter((name) => wanted[name].length > 0)
  return (named) => given.every((name) => wanted[name].includes(String(named[name])))
}
