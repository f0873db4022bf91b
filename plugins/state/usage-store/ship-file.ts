/**
 * Ships one file of the ledger to the store: some lines at a time, each time in one transaction with the position up to which it is read.
 */
import { appendFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { readFrame } from '../ledger/frame.js'
import { endMark } from '../ledger/read.js'
import type { LedgerRecord } from '../types.js'
import type { Backlog, Unshipped } from './backlog.js'
import { firstLines, readPiece } from './pieces.js'
import type { UsageStore } from './store.js'

const maxRecords = 500

/** Beside the ledger's files: records that the store refused, with the reason, as JSON lines. */
const refusedFile = 'refused.jsonl'

/** Ships what the backlog has counted. `onRefused` hears why the store refused a record. Rejects if the store cannot be asked. */
export async function shipFile (store: UsageStore, backlog: Backlog, file: Unshipped, onRefused: (error: unknown) => void): Promise<void> {
  while (file.shipped < file.counted) {
    const piece = await readPiece(file.path, file.shipped)
    if (piece === null) return
    const { lines, end } = firstLines(piece, maxRecords)
    const records = lines.flatMap((line) => readFrame(line) ?? [])
    const bytes = await takeIn({ store, file, onRefused }, records, end)
    backlog.shipped(file, { end, records: lines.filter((line) => line !== endMark).length, time: records.at(-1)?.time })
    // Another process may have read further.
    await backlog.note(new Map([[file.name, bytes]]))
  }
}

interface Way {
  readonly store: UsageStore
  readonly file: Unshipped
  readonly onRefused: (error: unknown) => void
}

/** A record that the store refuses must not keep others from it: it is found by halving, and put aside. */
async function takeIn (way: Way, records: readonly LedgerRecord[], end: number): Promise<number> {
  const { store, file, onRefused } = way
  try {
    return await store.takeIn(records, file.name, file.shipped, end)
  } catch (error) {
    if (!isRefusal(error)) throw error
    if (records.length > 1) {
      const half = records.length >> 1
      await takeIn(way, records.slice(0, half), file.shipped)
      return await takeIn(way, records.slice(half), end)
    }
    await appendFile(join(dirname(file.path), refusedFile), `${JSON.stringify({ reason: String(error), record: records[0] })}\n`)
    onRefused(error)
    return await store.takeIn([], file.name, file.shipped, end)
  }
}

/** Whether the record is at fault and not the store's state. SQLSTATE classes: data exception, integrity constraint, program limit. */
function isRefusal (error: unknown): boolean {
  return error instanceof RangeError || /^(?:22|23|54)/.test(String(Object(error).code))
}
