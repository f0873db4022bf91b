import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { open, rm, type FileHandle } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { withDefaults } from '../core/options.js'
import { StoreDownError } from '../core/balances/store-down.js'
import { writeFrame } from './ledger-frame.js'
import { endMark, ledgerFiles, readLedger, readUnsettled } from './ledger-read.js'
import { makeFolder } from './make-folder.js'
import type { Ledger, LedgerConfig, LedgerRange, LedgerRecord, Shipping, Trouble } from './types.js'

const defaults = { maxFileBytes: 64 * 1024 * 1024, maxFileAgeMs: 24 * 60 * 60_000, keepMs: Infinity }
const retryMs = 1_000
/** Charges are remembered for as long (`rememberMs`). */
const recoverMs = 24 * 60 * 60_000
/** Records of this time share one write: a disk that is waited for less often serves everybody else better. */
const gatherMs = 5

interface Waiting {
  readonly time: number
  readonly line: string
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

interface FileShipping extends Shipping {
  /** Whether all of a file is shipped. */
  readonly has: (name: string, bytes: number) => boolean
}

interface OpenFile {
  readonly path: string
  readonly handle: FileHandle
  readonly openedAt: number
  bytes: number
}

/**
 * A ledger of plain files. Each process appends to files of its own, so that no two writers ever meet; whoever reads takes
 * all of them. Records that arrive while a write runs share the next one, and are acknowledged when the disk has them.
 */
export class FileLedger implements Ledger {
  readonly #path: string
  readonly #config: Required<LedgerConfig>
  readonly #now: () => number
  readonly #maxWaiting: number
  #waiting: Waiting[] = []
  #file: OpenFile | null = null
  #writing: Promise<void> | null = null
  #closing = false
  #failing = false
  /** Whoever waits for a write, and not for its success. */
  #flushes: Array<() => void> = []
  readonly #listeners = new Set<Trouble>()
  #shipping: FileShipping | null = null
  /** Names of the files that this process has made. */
  readonly #own = new Set<string>()
  #allSettled = true
  /** Files that were full before: their records, too, may be unsettled until the end. */
  #full: string[] = []

  /** `maxWaiting` records may wait for a disk that takes none; one more is refused with an error. */
  constructor (path: string, config: LedgerConfig = {}, now: () => number = Date.now, maxWaiting = 100_000) {
    this.#path = path
    this.#config = withDefaults(defaults, config)
    this.#now = now
    this.#maxWaiting = maxWaiting
    makeFolder(path)
  }

  async append (record: LedgerRecord): Promise<void> {
    if (this.#waiting.length >= this.#maxWaiting) throw new StoreDownError('cannot keep more usage records')
    const line = writeFrame(record)
    const kept = new Promise<void>((resolve, reject) => this.#waiting.push({ time: record.time, line, resolve, reject }))
    this.#writing ??= this.#drain()
    await kept
  }

  async flush (): Promise<void> {
    await Promise.race([this.#writing, new Promise<void>((resolve) => this.#flushes.push(resolve))])
  }

  /** From now on no file is deleted before all of it is shipped. */
  shipBy (shipping: FileShipping): void {
    this.#shipping = shipping
  }

  get shipping (): Shipping | null {
    return this.#shipping
  }

  /** Whether this process has made the file. */
  readonly owns = (name: string): boolean => this.#own.has(name)

  readonly onTrouble = (listener: Trouble): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  read (range?: LedgerRange): AsyncIterable<LedgerRecord> {
    return readLedger(this.#path, range)
  }

  unsettled (): AsyncIterable<LedgerRecord> {
    return readUnsettled(this.#path, this.#now() - recoverMs)
  }

  noteUnsettled (): void {
    this.#allSettled = false
  }

  async close (): Promise<void> {
    this.#closing = true
    await (this.#writing ?? undefined)
    if (this.#allSettled) await this.#file?.handle.appendFile(`${endMark}\n`)
    await this.#file?.handle.close()
    if (this.#allSettled) for (const path of this.#full) await markEnd(path)
  }

  async #drain (): Promise<void> {
    await pause(gatherMs)
    for (let [first] = this.#waiting; first !== undefined; [first] = this.#waiting) {
      await this.#write(this.#waiting.splice(0), first.time)
    }
    this.#writing = null
    this.#flushes = []
  }

  async #write (batch: readonly Waiting[], since: number): Promise<void> {
    try {
      const file = await this.#current(since)
      const text = Buffer.from(batch.map(({ line }) => line).join(''))
      await file.handle.appendFile(text)
      await file.handle.datasync()
      file.bytes += text.length
      this.#failing = false
      for (const { resolve } of batch) resolve()
    } catch (cause) {
      this.#waiting = [...batch, ...this.#waiting]
      await this.#undo()
      this.#tell(cause)
      if (!this.#closing) return await pause(retryMs)
      const lost = new StoreDownError('could not keep usage records', { cause })
      for (const { reject } of this.#waiting.splice(0)) reject(lost)
    }
  }

  #tell (cause: unknown): void {
    for (const resolve of this.#flushes.splice(0)) resolve()
    for (const listener of this.#listeners) listener(cause, this.#failing)
    this.#failing = true
  }

  /** `since`: the time of the first record that is to be in it. */
  async #current (since: number): Promise<OpenFile> {
    const { maxFileBytes, maxFileAgeMs, keepMs } = this.#config
    const now = this.#now()
    if (this.#file !== null && this.#file.bytes < maxFileBytes && now - this.#file.openedAt < maxFileAgeMs) return this.#file
    await this.#file?.handle.close()
    if (this.#file !== null) this.#full.push(this.#file.path)
    this.#file = null
    await dropOld(this.#path, now - keepMs, this.#shipping)
    const name = `${String(since).padStart(15, '0')}-${process.pid}-${randomBytes(4).toString('hex')}.ledger`
    const path = join(this.#path, name)
    this.#own.add(name)
    this.#file = { path, handle: await open(path, 'ax'), openedAt: now, bytes: 0 }
    return this.#file
  }

  /** Nothing of a batch that failed stays behind: it is written again. A file that cannot even be cut back is left alone. */
  async #undo (): Promise<void> {
    const file = this.#file
    try {
      await file?.handle.truncate(file.bytes)
    } catch {
      this.#file = null
      await file?.handle.close().catch(() => {})
    }
  }
}

/** A file that is gone needs no mark: it was too old to be kept. */
async function markEnd (path: string): Promise<void> {
  const handle = await open(path, constants.O_WRONLY | constants.O_APPEND).catch(() => null)
  await handle?.appendFile(`${endMark}\n`)
  await handle?.close()
}

async function dropOld (path: string, before: number, shipping: FileShipping | null): Promise<void> {
  const old = (await ledgerFiles(path)).filter((file) => file.endedAt < before && shipping?.has(basename(file.path), file.bytes) !== false)
  await Promise.all(old.map(async (file) => await rm(file.path)))
}
