import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { open, rm, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { StoreDownError } from './breaker.js'
import { writeFrame } from './ledger-frame.js'
import { endMark, ledgerFiles, readLedger, readUnsettled } from './ledger-read.js'
import type { Ledger, LedgerConfig } from './types.js'

const defaults = { maxFileBytes: 64 * 1024 * 1024, maxFileAgeMs: 24 * 60 * 60_000, keepMs: Infinity }
/** Records that may wait for a disk that takes none; more are refused, each with an error. */
const maxWaiting = 100_000
const retryMs = 1_000
/** Charges are remembered for as long (`rememberMs`). */
const recoverMs = 24 * 60 * 60_000
/** Records of this time share one write: a disk that is waited for less often serves everybody else better. */
const gatherMs = 5

interface Waiting {
  readonly line: string
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

interface OpenFile {
  readonly handle: FileHandle
  readonly startedAt: number
  bytes: number
}

/**
 * A ledger of plain files. Each process appends to files of its own, so that no two writers ever meet; whoever reads takes
 * all of them. Records that arrive while a write runs share the next one, and are acknowledged when the disk has them.
 */
export function fileLedger (path: string, config: LedgerConfig = {}, now: () => number = Date.now): Ledger {
  const { maxFileBytes, maxFileAgeMs, keepMs } = { ...defaults, ...config }
  mkdirSync(path, { recursive: true })
  let waiting: Waiting[] = []
  let file: OpenFile | null = null
  let writing: Promise<void> | null = null
  let closing = false

  const current = async (): Promise<OpenFile> => {
    if (file !== null && file.bytes < maxFileBytes && now() - file.startedAt < maxFileAgeMs) return file
    await file?.handle.close()
    file = null
    await dropOld(path, now() - keepMs)
    const startedAt = now()
    const name = `${String(startedAt).padStart(15, '0')}-${process.pid}-${randomBytes(4).toString('hex')}.ledger`
    file = { handle: await open(join(path, name), 'ax'), startedAt, bytes: 0 }
    return file
  }
  const writeBatch = async (): Promise<void> => {
    const batch = waiting
    waiting = []
    const text = Buffer.from(batch.map(({ line }) => line).join(''))
    try {
      const to = await current()
      await commit(to, text)
      to.bytes += text.length
      for (const { resolve } of batch) resolve()
    } catch (cause) {
      waiting = [...batch, ...waiting]
      if (!closing) return await pause(retryMs)
      const lost = new StoreDownError('could not keep usage records', { cause })
      for (const { reject } of waiting.splice(0)) reject(lost)
    }
  }
  const drain = async (): Promise<void> => {
    await pause(gatherMs)
    while (waiting.length > 0) await writeBatch()
    writing = null
  }
  const flush = async (): Promise<void> => { await (writing ?? undefined) }
  return {
    append: async (record) => {
      if (waiting.length >= maxWaiting) throw new StoreDownError('cannot keep more usage records')
      const kept = new Promise<void>((resolve, reject) => waiting.push({ line: writeFrame(record), resolve, reject }))
      writing ??= drain()
      await kept
    },
    flush,
    read: (range) => readLedger(path, range),
    unsettled: () => readUnsettled(path, now() - recoverMs),
    close: async () => {
      closing = true
      await flush()
      await file?.handle.appendFile(`${endMark}\n`)
      await file?.handle.close()
    },
  }
}

/** Nothing of a batch that failed stays behind: it is written again. */
async function commit ({ handle, bytes }: OpenFile, text: Buffer): Promise<void> {
  try {
    await handle.appendFile(text)
    await handle.datasync()
  } catch (error) {
    await handle.truncate(bytes)
    throw error
  }
}

async function dropOld (path: string, before: number): Promise<void> {
  const old = (await ledgerFiles(path)).filter((file) => file.endedAt < before)
  await Promise.all(old.map(async (file) => await rm(file.path)))
}
