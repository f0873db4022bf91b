/** Sources of the usage of a report. */
import type { LedgerRecord } from '../../plugins/state/types.js'
import type { Calendar } from '../sums/calendar.js'
import type { Dimension } from '../sums/dimensions.js'
import type { Sums } from '../sums/sums.js'
import type { Question } from '../sums/wanted.js'

export interface Source {
  /** All records, in batches. */
  readonly records: (question: Question) => AsyncIterable<LedgerRecord[]>
  /** Adds their sums, without making any record. */
  readonly addTo: (sums: Sums, by: readonly Dimension[], calendar: Calendar, question: Question) => Promise<void>
  readonly close: () => Promise<void>
}
