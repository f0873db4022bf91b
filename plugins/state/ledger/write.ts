import { randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import { appendFile, open, rm, stat, truncate, utimes, type FileHandle } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { withDefaults } from '../../core/config/options.js'
import { filesBeyond } from './age.js'
import { endMark, ledgerFiles, slackMs } from './read.js'
import { makeFolder } from '../make-folder.js'
import { statOf } from '../stat-of.js'
import type { LedgerConfig, Shipping } from '../types.js'

const defaults = { maxFileBytes: 64 * 1024 * 1024, maxFileAgeMs: 24 * 60 * 60_000, keepMs: Infinity }

export interface FileShipping extends Shipping {
  /** Whether a file is shipped completely. */
  readonly has: (name: string, bytes: number) => boolean
}

/** Times of the records of one text, in milliseconds since the epoch. */
export interface Span {
  readonly oldest: number
  readonly newest: number
}

interface OpenFile {
  readonly path: string
  readonly handle: FileHandle
  /** Time of its oldest record, as in its name. */
  readonly since: number
  /** Time of its newest record. */
  newest: number
  readonly openedAt: number
  bytes: number
}

/** Appends to its own files, one after the other, and deletes those of all processes that are too old. One write at a time. */
export class LedgerWriter {
  /** If set, no file is deleted before it is shipped completely. */
  shipping: FileShipping | null = null
  /** Names of all files that it created. */
  readonly own = new Set<string>()
  readonly #path: string
  /** Number of the folder that its folder is in. */
  readonly #parent: number
  readonly #config: Required<LedgerConfig>
  readonly #now: () => number
  /** Node's permission model allows no `datasync`. There each write waits for the disk by itself. */
  readonly #flags = 'permission' in process ? 'as' : 'ax'
  #file: OpenFile | null = null
  /** Earlier files that became full: their records may be unsettled, too, until the end. */
  #full: string[] = []
  /** Files that could not be cut back yet, and to which length. */
  readonly #torn = new Map<string, number>()

  constructor (path: string, config: LedgerConfig, now: () => number) {
    this.#path = path
    this.#config = withDefaults(defaults, config)
    this.#now = now
    makeFolder(path)
    this.#parent = statSync(dirname(path)).ino
  }

  /** Resolves when the disk has the text; rejects if the disk does not accept it. */
  async write (text: Buffer, span: Span): Promise<void> {
    try {
      if (await this.#append(text, span)) return
      // Taken out of that file, as it may be counted where it is now, and written to another one.
      await this.#undo()
      await this.#leave()
      await this.#append(text, span)
    } catch (error) {
      await this.#undo()
      throw error
    }
  }

  /** Nothing may be written after it. `isMarked`: all records of all its files are settled. */
  async end (isMarked: boolean): Promise<void> {
    await this.#leave().catch(() => {})
    if (isMarked) await Promise.allSettled(this.#full.map(markEnd))
  }

  /** False where others deleted the file, cut it off or moved it, even just now: what is written to it is not shipped, or lost. */
  async #append (text: Buffer, { oldest, newest }: Span): Promise<boolean> {
    const file = await this.#current(oldest)
    await file.handle.appendFile(text)
    if (this.#flags === 'ax') await file.handle.datasync()
    const bytes = file.bytes + text.length
    // A name that cannot be looked at, as in a folder without rights, is no reason to take out what the disk has.
    const there = await statOf(file.path).catch(async () => await file.handle.stat())
    if (there !== null && there.nlink > 0 && there.size >= bytes) {
      file.bytes = bytes
      file.newest = Math.max(file.newest, newest)
      return true
    }
    file.bytes = (await file.handle.stat()).size - text.length
    return false
  }

  async #leave (): Promise<void> {
    const file = this.#file
    if (file === null) return
    await file.handle.close()
    this.#full.push(file.path)
    this.#file = null
  }

  /** `since`: the time of the oldest record to be written. Other processes may delete a file to which nothing was written for `keepMs`. */
  async #current (since: number): Promise<OpenFile> {
    const { maxFileBytes, maxFileAgeMs, keepMs } = this.#config
    const now = this.#now()
    const file = this.#file
    if (file !== null) {
      const { size } = await file.handle.stat()
      // Others may have put a mark behind it, or cut it off: what is written to it then is not shipped.
      const isWhole = size >= file.bytes
      file.bytes = size
      const isYoung = now - file.openedAt < Math.min(maxFileAgeMs, keepMs)
      // False after the clock was set back: a file's name has the time of its oldest record, and the file's own time, which each write sets
      // to the clock's, must not be before its newest one.
      const hasPlace = file.since <= since && file.newest - since <= slackMs
      if (isWhole && size < maxFileBytes && isYoung && hasPlace) return file
      await this.#leave()
    }
    // Somebody may have deleted it. Where a volume is unmounted, what is made in its place would be hidden once it is back.
    if ((await stat(dirname(this.#path))).ino === this.#parent) makeFolder(this.#path)
    await this.#cutBack()
    await this.#dropOld(now)
    const name = `${String(since).padStart(15, '0')}-${process.pid}-${randomBytes(4).toString('hex')}.ledger`
    const path = join(this.#path, name)
    this.own.add(name)
    this.#file = { path, handle: await open(path, this.#flags), since, newest: since, openedAt: now, bytes: 0 }
    return this.#file
  }

  async #dropOld (now: number): Promise<void> {
    const { maxFileAgeMs, keepMs } = this.#config
    const old = filesBeyond(keepMs, await ledgerFiles(this.#path), now, Math.max(maxFileAgeMs, defaults.maxFileAgeMs))
      .filter(({ path, bytes }) => this.shipping?.has(basename(path), bytes) !== false)
    // A file that cannot be deleted must not stop the next one from being opened; it is tried again with the one after.
    await Promise.allSettled(old.map(async ({ path }) => await rm(path)))
  }

  /** Removes what is left of a failed text, because it is written again. A file that cannot be cut back now is closed. */
  async #undo (): Promise<void> {
    const file = this.#file
    if (file === null) return
    try {
      await file.handle.truncate(file.bytes)
    } catch {
      this.#file = null
      this.#torn.set(file.path, file.bytes)
      await file.handle.close().catch(() => {})
    }
  }

  /** A file that still cannot be cut back must not keep records from the disk; it is tried again with the next one. */
  async #cutBack (): Promise<void> {
    await Promise.allSettled([...this.#torn].map(async ([path, bytes]) => {
      await truncate(path, bytes)
      this.#torn.delete(path)
    }))
  }
}

/**
 * A file that is gone needs no mark: it was too old to be kept. One that takes none is read again at the next start: nothing is lost. Its
 * own time stays that of its newest record, because keeping and reading go by it.
 */
async function markEnd (path: string): Promise<void> {
  const { atime, mtime } = await stat(path)
  await appendFile(path, `${endMark}\n`)
  await utimes(path, atime, mtime)
}
