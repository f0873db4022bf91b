import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { open, rm, type FileHandle } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { withDefaults } from '../core/options.js'
import { StoreDownError } from '../core/balances/store-down.js'
import { filesBeyond } from './ledger-age.js'
import { writeFrame } from './ledger-frame.js'
import { endMark, ledgerFiles, readLedger, readUnsettled } from './ledger-read.js'
import { makeFolder } from './make-folder.js'
import type { Ledger, LedgerConfig, LedgerRange, LedgerRecord, Shipping, Trouble } from './types.js'

const defaults = { maxFileBytes: 64 * 1024 * 1024, maxFileAgeMs: 24 * 60 * 60_000, keepMs: Infinity }
const retryMs = 1_000
/** Charges are remembered for as long (`rememberMs`). */
const recoverMs = 24 * 60 * 60_000
/** From one write to the next: records of this time share one. A disk that is waited for less often serves everybody else better. */
const gatherMs = 25
/** What is written to a file that somebody deleted is gone with it: it is looked after so often. */
const lookMs = 1_000

/** Records that share a write, and its end. */
interface Batch {
  readonly records: LedgerRecord[]
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

interface FileShipping extends Shipping {
  /** Whether all of a file is shipped. */
  readonly has: (name: string, bytes: number) => boolean
}

interface OpenFile {
  readonly path: string
  readonly handle: FileHandle
  /** The time of its oldest record, as its name tells. */
  readonly since: number
  readonly openedAt: number
  lookedAt: number
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
  /** Those that the next write takes; null for none. */
  #next: Batch | null = null
  /** That they are kept. One promise for all: each of its own would cost a request more than its record does. */
  #kept = Promise.resolve()
  /** Records that are not kept yet. */
  #waiting = 0
  #file: OpenFile | null = null
  #writing: Promise<void> | null = null
  #wroteAt = -Infinity
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

  append (record: LedgerRecord): Promise<void> {
    if (this.#waiting >= this.#maxWaiting) return Promise.reject(new StoreDownError('cannot keep more usage records'))
    if (this.#next === null) {
      this.#kept = new Promise((resolve, reject) => { this.#next = { records: [], resolve, reject } })
    }
    this.#next?.records.push(record)
    this.#waiting += 1
    this.#writing ??= this.#drain()
    return this.#kept
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
    if (this.#file !== null) await endFile(this.#file.handle, this.#allSettled)
    if (this.#allSettled) for (const path of this.#full) await markEnd(path)
  }

  async #drain (): Promise<void> {
    for (let batch = this.#next; batch !== null; batch = this.#next) {
      await pause(Math.max(0, this.#wroteAt + gatherMs - performance.now()))
      this.#next = null
      this.#wroteAt = performance.now()
      await this.#keep(batch)
      this.#waiting -= batch.records.length
    }
    this.#writing = null
    this.#flushes = []
  }

  /** Tries it until the disk takes it. Whoever closes the ledger waits for one try more. */
  async #keep ({ records, resolve, reject }: Batch): Promise<void> {
    try {
      const text = Buffer.from(records.map(writeFrame).join(''))
      const since = records.reduce((least, { time }) => Math.min(least, time), Infinity)
      while (!await this.#write(text, since)) await pause(retryMs)
      resolve()
    } catch (error) {
      reject(error)
    }
  }

  /** False where the disk does not take it. Throws the same once nobody tries again. */
  async #write (text: Buffer, since: number): Promise<boolean> {
    try {
      const file = await this.#current(since)
      await file.handle.appendFile(text)
      await file.handle.datasync()
      file.bytes += text.length
      this.#failing = false
      return true
    } catch (cause) {
      await this.#undo()
      this.#tell(cause)
      if (this.#closing) throw new StoreDownError('could not keep usage records', { cause })
      return false
    }
  }

  #tell (cause: unknown): void {
    for (const resolve of this.#flushes.splice(0)) resolve()
    for (const listener of this.#listeners) listener(cause, this.#failing)
    this.#failing = true
  }

  /**
   * `since`: the time of the oldest record that is to be in it; older than the file's where the clock was set back. Others may delete a
   * file to which nothing was written for `keepMs`.
   */
  async #current (since: number): Promise<OpenFile> {
    const { maxFileBytes, maxFileAgeMs, keepMs } = this.#config
    const now = this.#now()
    const file = this.#file
    const maxAgeMs = Math.min(maxFileAgeMs, keepMs)
    const isFit = file !== null && file.bytes < maxFileBytes && now - file.openedAt < maxAgeMs && file.since <= since
    if (isFit && (Math.abs(now - file.lookedAt) < lookMs || await isThere(file, now))) return file
    await this.#file?.handle.close()
    if (this.#file !== null) this.#full.push(this.#file.path)
    this.#file = null
    await this.#dropOld(now)
    const name = `${String(since).padStart(15, '0')}-${process.pid}-${randomBytes(4).toString('hex')}.ledger`
    const path = join(this.#path, name)
    this.#own.add(name)
    this.#file = { path, handle: await open(path, 'ax'), since, openedAt: now, lookedAt: now, bytes: 0 }
    return this.#file
  }

  async #dropOld (now: number): Promise<void> {
    const { maxFileAgeMs, keepMs } = this.#config
    const old = filesBeyond(keepMs, await ledgerFiles(this.#path), now, Math.max(maxFileAgeMs, defaults.maxFileAgeMs))
      .filter(({ path, bytes }) => this.#shipping?.has(basename(path), bytes) !== false)
    await Promise.all(old.map(async ({ path }) => await rm(path, { force: true })))
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

async function isThere (file: OpenFile, now: number): Promise<boolean> {
  file.lookedAt = now
  return (await file.handle.stat()).nlink > 0
}

/** A file that is gone needs no mark: it was too old to be kept. */
async function markEnd (path: string): Promise<void> {
  const handle = await open(path, constants.O_WRONLY | constants.O_APPEND).catch(() => null)
  if (handle !== null) await endFile(handle, true)
}

/** Where the disk takes no mark, the next start looks at the file again: nothing is lost, and the end goes on. */
async function endFile (handle: FileHandle, isMarked: boolean): Promise<void> {
  if (isMarked) await handle.appendFile(`${endMark}\n`).catch(() => {})
  await handle.close().catch(() => {})
}
