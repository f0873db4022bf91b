import { frameHead, isFrame } from '../../plugins/state/ledger/frame.js'
import { endMark } from '../../plugins/state/ledger/read.js'
import type { Calendar } from './calendar.js'
import type { Dimension } from './dimensions.js'
import { readPart, type FilePart } from './file-parts.js'
import { Scanned } from './scan-record.js'
import { keeps, type Question } from './wanted.js'
import type { Sums } from './sums.js'

/** What is asked of the files. */
export interface SumQuestion {
  readonly by: readonly Dimension[]
  readonly calendar: Calendar
  readonly question: Question
}

/** Adds the records of parts of files to sums, without making any record. Calls `onDamage` for each line that is not whole. */
export function partAdder (
  sums: Sums, { by, calendar, question: { from, to, wanted } }: SumQuestion, onDamage: (path: string) => void
): (part: FilePart) => void {
  const keep = keeps(wanted)
  const record = new Scanned()
  return (part) => readPart(part, (json, start, end) => {
    if (!isFrame(json.bytes, start, end)) {
      if (json.bytes.toString('latin1', start, end) !== endMark) onDamage(part.path)
      return
    }
    record.read(json, start + frameHead)
    if (record.time >= from && record.time < to && keep(record)) sums.add(by.map(({ read }) => read(record, calendar)), record)
  })
}
