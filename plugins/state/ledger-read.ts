import { createReadStream } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { readFrame } from './ledger-frame.js'
import type { LedgerRange, LedgerRecord } from './types.js'

export interface LedgerFile {
  readonly path: string
  readonly startedAt: number
  /** When its newest record was written. */
  readonly endedAt: number
  readonly bytes: number
}

/** Oldest first. */
export async function ledgerFiles (path: string): Promise<LedgerFile[]> {
  const names = (await readdir(path)).filter((name) => name.endsWith('.ledger')).sort()
  return await Promise.all(names.map(async (name) => {
    const file = join(path, name)
    const { mtimeMs, size } = await stat(file)
    return { path: file, startedAt: parseInt(name, 10), endedAt: mtimeMs, bytes: size }
  }))
}

/** Whole records of a range, in order within each process. A line that a crash cut off was never acknowledged. */
export async function * readLedger (path: string, range: LedgerRange = {}): AsyncGenerator<LedgerRecord> {
  const { from = 0, to = Infinity, onProgress } = range
  const files = (await ledgerFiles(path)).filter((file) => file.endedAt >= from && file.startedAt < to)
  const total = files.reduce((sum, file) => sum + file.bytes, 0)
  let done = 0
  for (const file of files) {
    for await (const line of createInterface({ input: createReadStream(file.path), crlfDelay: Infinity })) {
      done += Buffer.byteLength(line) + 1
      onProgress?.(Math.min(done, total), total)
      const record = readFrame(line)
      if (record === null) range.onDamage?.(file.path)
      else if (record.time >= from && record.time < to) yield record
    }
  }
}
