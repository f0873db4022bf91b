import { createReadStream } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { readFrame } from './frame.js'
import { isGone, statOf } from '../stat-of.js'
import type { LedgerRange, LedgerRecord, StateConfig } from '../types.js'

/** The last line of a file whose process ended in order and settled all of its records. */
export const endMark = 'end'
/** A settlement follows its record at once, or within what may wait for an unreachable store: ten thousand records of 1.6 KB. */
const tailBytes = 16 * 1024 * 1024

/** Tolerance for a file's own time, which is not exact, and for a clock that was set. */
export const slackMs = 60_000
const pieceBytes = 256 * 1024

/** Where a host keeps its state, and below it its ledger. */
export const defaultPath = './data'

export function ledgerFolder ({ path = defaultPath }: Pick<StateConfig, 'path'>): string {
  return join(path, 'ledger')
}

export interface LedgerFile {
  readonly path: string
  readonly startedAt: number
  /** When its newest record was written, in milliseconds since the epoch. */
  readonly endedAt: number
  readonly bytes: number
}

/** Names of the ledger files of a folder, oldest first. */
export async function ledgerNames (path: string): Promise<string[]> {
  return (await readdir(path)).filter(isLedgerName).sort()
}

export function isLedgerName (name: string): boolean {
  return name.endsWith('.ledger')
}

/** All ledger files, oldest first. Files that another process deletes meanwhile are left out. */
export async function ledgerFiles (path: string): Promise<LedgerFile[]> {
  const files = await Promise.all((await ledgerNames(path)).map(async (name) => {
    const file = join(path, name)
    const found = await statOf(file)
    return found === null ? [] : [{ path: file, startedAt: parseInt(name, 10), endedAt: found.mtimeMs, bytes: found.size }]
  }))
  return files.flat()
}

/** Whole records of a range, in order within each process. A line that a crash cut off was never acknowledged, and is left out. */
export async function * readLedger (path: string, range: LedgerRange = {}): AsyncGenerator<LedgerRecord> {
  for await (const batch of readBatches(path, range)) yield * batch
}

/** The same in batches as read: yielding one record at a time costs as much as all the rest of a report. */
export async function * readBatches (path: string, range: LedgerRange = {}): AsyncGenerator<LedgerRecord[]> {
  const files = await filesOf(path, range)
  const total = files.reduce((sum, file) => sum + file.bytes, 0)
  let done = 0
  for (const file of files) {
    for await (const lines of linesOf(file.path)) {
      const batch = recordsIn(lines, file.path, range)
      for (const line of lines) done += Buffer.byteLength(line) + 1
      range.onProgress?.(Math.min(done, total), total)
      yield batch
    }
  }
}

function recordsIn (lines: readonly string[], path: string, { from = 0, to = Infinity, onDamage }: LedgerRange): LedgerRecord[] {
  const records: LedgerRecord[] = []
  for (const line of lines) {
    const record = readFrame(line)
    if (record !== null && record.time >= from && record.time < to) records.push(record)
    if (record === null && line !== endMark) onDamage?.(path)
  }
  return records
}

/** Files that may hold records of a range, oldest first. */
export async function filesOf (path: string, { from = 0, to = Infinity }: LedgerRange): Promise<LedgerFile[]> {
  return (await ledgerFiles(path)).filter((file) => file.endedAt >= from - slackMs && file.startedAt < to)
}

/**
 * Records at the ends of files, behind an end mark if they have one, not older than `since`: of older ones it is no longer known whether
 * they were charged.
 */
export async function * readUnsettled (path: string, since: number): AsyncGenerator<LedgerRecord> {
  for (const file of await ledgerFiles(path)) {
    if (file.endedAt < since) continue
    const lines: string[] = []
    for await (const some of linesOf(file.path, Math.max(0, file.bytes - tailBytes))) lines.push(...some)
    // Whoever makes balances anew may mark the file of a process that lives on.
    const open = lines.slice(lines.lastIndexOf(endMark) + 1)
    yield * open.flatMap((line) => readFrame(line) ?? []).filter(({ time }) => time >= since)
  }
}

/** Lines in batches as read. The last one may lack its end. None if the file is gone. */
async function * linesOf (path: string, start = 0): AsyncGenerator<string[]> {
  let rest = ''
  for await (const piece of piecesOf(path, start)) {
    const lines = (rest + piece).split('\n')
    rest = String(lines.pop())
    yield lines
  }
  if (rest !== '') yield [rest]
}

async function * piecesOf (path: string, start: number): AsyncGenerator<string> {
  try {
    const pieces: AsyncIterable<string> = createReadStream(path, { start, encoding: 'utf8', highWaterMark: pieceBytes })
    yield * pieces
  } catch (error) {
    if (!isGone(error)) throw error
  }
}
