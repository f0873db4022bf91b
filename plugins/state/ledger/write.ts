import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { open, rm, type FileHandle } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { withDefaults } from '../../core/config/options.js'
import { filesBeyond } from './age.js'
import { endMark, ledgerFiles, slackMs } from './read.js'
import { makeFolder } from '../make-folder.js'
import type { LedgerConfig, Shipping } from '../types.js'

const defaults = { maxFileBytes: 64 * 1024 * 1024, maxFileAgeMs: 24 * 60 * 60_000, keepMs: Infinity }
/** What is written to a file that somebody deleted is gone with it: it is looked after so often. */
const lookMs = 1_000

export interface FileShipping extends Shipping {
  /** Whether all of a file is shipped. */
  readonly has: (name: string, bytes: number) => boolean
}

/** Times of the records of one text. */
export interface Span {
  readonly oldest: number
  readonly newest: number
}

interface OpenFile {
  readonly path: string
  readonly handle: FileHandle
  /** The time of its oldest record, as its name tells. */
  readonly since: number
  /** The time of its newest one. */
  newest: number
  readonly openedAt: number
  lookedAt: number
  bytes: number
}

/** Appends to files of its own, one after the other, and deletes those of all that are too old. One write at a time. */
export class LedgerWriter {
  /** Where there is one, no file is deleted before all of it is shipped. */
  shipping: FileShipping | null = null
  readonly #path: string
  readonly #config: Required<LedgerConfig>
  readonly #now: () => number
  #file: OpenFile | null = null
  /** Files that were full before: their records, too, may be unsettled until the end. */
  #full: string[] = []
  /** Names of all that it has made. */
  readonly #own = new Set<string>()

  constructor (path: string, config: LedgerConfig, now: () => number) {
    this.#path = path
    this.#config = withDefaults(defaults, config)
    this.#now = now
    makeFolder(path)
  }

  /** Whether this process has made the file. */
  owns (name: string): boolean {
    return this.#own.has(name)
  }

  /** Resolves when the disk has it; rejects where the disk does not take it. */
  async write (text: Buffer, { oldest, newest }: Span): Promise<void> {
    try {
      const file = await this.#current(oldest)
      await file.handle.appendFile(text)
      await file.handle.datasync()
      file.bytes += text.length
      file.newest = Math.max(file.newest, newest)
    } catch (error) {
      await this.#undo()
      throw error
    }
  }

  /** Nothing is written after it. `isMarked`: no record of any of its files is unsettled. */
  async end (isMarked: boolean): Promise<void> {
    if (this.#file !== null) await endFile(this.#file.handle, isMarked)
    if (isMarked) for (const path of this.#full) await markEnd(path)
  }

  /** `since`: the time of the oldest record that is to be in it. Others may delete a file to which nothing was written for `keepMs`. */
  async #current (since: number): Promise<OpenFile> {
    const { maxFileBytes, maxFileAgeMs, keepMs } = this.#config
    const now = this.#now()
    const file = this.#file
    const maxAgeMs = Math.min(maxFileAgeMs, keepMs)
    const isFit = file !== null && file.bytes < maxFileBytes && now - file.openedAt < maxAgeMs && hasPlace(file, since)
    if (isFit && (Math.abs(now - file.lookedAt) < lookMs || await isThere(file, now))) return file
    await this.#file?.handle.close()
    if (this.#file !== null) this.#full.push(this.#file.path)
    this.#file = null
    await this.#dropOld(now)
    const name = `${String(since).padStart(15, '0')}-${process.pid}-${randomBytes(4).toString('hex')}.ledger`
    const path = join(this.#path, name)
    this.#own.add(name)
    this.#file = { path, handle: await open(path, 'ax'), since, newest: since, openedAt: now, lookedAt: now, bytes: 0 }
    return this.#file
  }

  async #dropOld (now: number): Promise<void> {
    const { maxFileAgeMs, keepMs } = this.#config
    const old = filesBeyond(keepMs, await ledgerFiles(this.#path), now, Math.max(maxFileAgeMs, defaults.maxFileAgeMs))
      .filter(({ path, bytes }) => this.shipping?.has(basename(path), bytes) !== false)
    // One that cannot be deleted keeps no record from the next file, and is met again with the one after.
    await Promise.allSettled(old.map(async ({ path }) => await rm(path, { force: true })))
  }

  /** Nothing of a text that failed stays behind: it is written again. A file that cannot even be cut back is left alone. */
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

/**
 * Not where the clock was set back. A file begins with its oldest record, as its name tells; and its own time, which each write makes the
 * clock's, must not be before its newest one.
 */
function hasPlace ({ since, newest }: OpenFile, time: number): boolean {
  return since <= time && newest - time <= slackMs
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
  if (isMarked) await mark(handle).catch(() => {})
  await handle.close().catch(() => {})
}

/** A mark is no record: a file's own time stays that of its newest one, as what is kept and what is read go by it. */
async function mark (handle: FileHandle): Promise<void> {
  const { atime, mtime } = await handle.stat()
  await handle.appendFile(`${endMark}\n`)
  await handle.utimes(atime, mtime)
}
