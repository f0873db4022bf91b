import { randomBytes } from 'node:crypto'
import { constants, statSync } from 'node:fs'
import { open, rm, stat, truncate, type FileHandle } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { withDefaults } from '../../core/config/options.js'
import { filesBeyond } from './age.js'
import { endMark, ledgerFiles, slackMs } from './read.js'
import { makeFolder } from '../make-folder.js'
import { isGone } from '../stat-of.js'
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
  /** Names of all files that it created. */
  readonly #own = new Set<string>()

  constructor (path: string, config: LedgerConfig, now: () => number) {
    this.#path = path
    this.#config = withDefaults(defaults, config)
    this.#now = now
    makeFolder(path)
    this.#parent = statSync(dirname(path)).ino
  }

  /** Whether this process created the file. */
  owns (name: string): boolean {
    return this.#own.has(name)
  }

  /** Resolves when the disk has the text; rejects if the disk does not accept it. */
  async write (text: Buffer, { oldest, newest }: Span): Promise<void> {
    try {
      const file = await this.#current(oldest)
      await file.handle.appendFile(text)
      if (this.#flags === 'ax') await file.handle.datasync()
      file.bytes += text.length
      file.newest = Math.max(file.newest, newest)
    } catch (error) {
      await this.#undo()
      throw error
    }
  }

  /** Nothing may be written after it. `isMarked`: all records of all its files are settled. */
  async end (isMarked: boolean): Promise<void> {
    if (this.#file !== null) await endFile(this.#file.handle, isMarked)
    if (isMarked) for (const path of this.#full) await markEnd(path)
  }

  /** `since`: the time of the oldest record to be written. Other processes may delete a file to which nothing was written for `keepMs`. */
  async #current (since: number): Promise<OpenFile> {
    const { maxFileBytes, maxFileAgeMs, keepMs } = this.#config
    const now = this.#now()
    const file = this.#file
    const maxAgeMs = Math.min(maxFileAgeMs, keepMs)
    if (file !== null) {
      // Others may have put a mark behind it, cut it off, deleted it, or moved it and made another: what is written to it then is not
      // shipped, or lost.
      const { nlink, size } = await file.handle.stat()
      const there = await stat(file.path).catch((error: unknown) => ({ size: isGone(error) ? -1 : size }))
      const isWhole = nlink > 0 && there.size >= file.bytes
      file.bytes = size
      if (isWhole && size < maxFileBytes && now - file.openedAt < maxAgeMs && hasPlace(file, since)) return file
      await file.handle.close()
      this.#full.push(file.path)
      this.#file = null
    }
    // Somebody may have deleted it. Where a volume is unmounted, what is made in its place would be hidden once it is back.
    if ((await stat(dirname(this.#path))).ino === this.#parent) makeFolder(this.#path)
    await this.#cutBack()
    await this.#dropOld(now)
    const name = `${String(since).padStart(15, '0')}-${process.pid}-${randomBytes(4).toString('hex')}.ledger`
    const path = join(this.#path, name)
    this.#own.add(name)
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
 * False after the clock was set back. A file's name has the time of its oldest record, and the file's own time, which each write sets to
 * the clock's, must not be before its newest one.
 */
function hasPlace ({ since, newest }: OpenFile, time: number): boolean {
  return since <= time && newest - time <= slackMs
}

/** A file that is gone needs no mark: it was too old to be kept. */
async function markEnd (path: string): Promise<void> {
  const handle = await open(path, constants.O_WRONLY | constants.O_APPEND).catch(() => null)
  if (handle !== null) await endFile(handle, true)
}

/** If the disk accepts no mark, the next start reads the file again. Nothing is lost, so closing goes on. */
async function endFile (handle: FileHandle, isMarked: boolean): Promise<void> {
  if (isMarked) await mark(handle).catch(() => {})
  await handle.close().catch(() => {})
}

/** The file's own time stays that of its newest record, because keeping and reading go by it. */
async function mark (handle: FileHandle): Promise<void> {
  const { atime, mtime } = await handle.stat()
  await handle.appendFile(`${endMark}\n`)
  await handle.utimes(atime, mtime)
}
