/** Writes to the durable file in a worker thread: waiting for the disk there delays no request. */
import { extname } from 'node:path'
import { Worker, type MessagePort } from 'node:worker_threads'
import { threadOptions } from '../../core/thread-options.js'
import { openDurable, type DurableFile, type StoredNote } from './durable-file.js'
import type { Spent } from './group-stores.js'

/** `isLess`: the stored value may be greater, and is replaced all the same. */
export type SpentEntry = readonly [table: 'spent', name: string, value: Spent, isLess?: boolean]

/** A name and its new value; null removes it. */
export type Entry =
  | SpentEntry
  | readonly [table: 'notes', name: string, value: StoredNote | null]
export type Entries = readonly Entry[]

const nothing = (): void => {}

/**
 * False if the disk accepts nothing. Synchronous, because the package ends the process when an asynchronous write fails in this way.
 * Entries that are to be removed but are not there are added to `absent`.
 */
export function saveEntries (file: DurableFile, entries: Entries, absent = new Set<Entry | undefined>()): boolean {
  const { writeDurable, spent, notes } = file
  try {
    writeDurable(() => {
      for (const entry of entries) {
        const [table, name, value, isLess] = entry
        if (value === null) {
          if (!(table === 'spent' ? spent : notes).removeSync(name)) absent.add(entry)
        } else if (table === 'notes') notes.putSync(name, value)
        // Another process may have stored a newer value.
        else if (isLess === true || numberOf(value) > numberOf(spent.get(name))) spent.putSync(name, value)
      }
    })
    return true
  } catch {
    return false
  }
}

function numberOf (value: Spent | undefined): number {
  return Number(Array.isArray(value) ? value[0] : value ?? -1)
}

/**
 * The thread's side: saves the entries of each message, and answers whether they were saved and, if the last one is a removal, whether
 * that was there. Null ends the thread. Messages that came while the disk was busy share one transaction.
 */
export async function serveDurable (port: MessagePort | null, path: string): Promise<void> {
  if (port === null) return
  const file = await openDurable(path)
  let waiting: Entries[] = []
  const save = (): void => {
    const together = waiting
    waiting = []
    const absent = new Set<Entry | undefined>()
    const isSaved = saveEntries(file, together.flat(), absent)
    for (const entries of together) port.postMessage(isSaved && !absent.has(entries.at(-1)))
  }
  port.on('message', (entries: Entries | null) => {
    if (entries === null) {
      setImmediate(() => { file.closeDurable().finally(() => port.close()) })
      return
    }
    if (waiting.length === 0) setImmediate(save)
    waiting.push(entries)
  })
}

/** This process's side. The thread is started with the first write, and again if it has ended. */
export class DurableThread {
  readonly #path: string
  #worker: Worker | null = null
  #waiting: Array<(isSaved: boolean) => void> = []
  #isClosed = false

  constructor (path: string) {
    this.#path = path
  }

  /** False if the entries could not be saved, or if the last one is a removal of what was not there. */
  async save (entries: Entries): Promise<boolean> {
    if (this.#isClosed) return false
    this.#worker ??= this.#begin()
    // Keeps the process alive while something is being saved.
    this.#worker.ref()
    this.#worker.postMessage(entries)
    return await new Promise<boolean>((resolve) => { this.#waiting.push(resolve) })
  }

  #begin (): Worker {
    const file = new URL(`./durable-thread${extname(import.meta.url)}`, import.meta.url)
    const worker = new Worker(file, { ...threadOptions(file), workerData: this.#path })
    worker.on('message', (isSaved: boolean) => {
      this.#waiting.shift()?.(isSaved)
      // `close` waits for its exit.
      if (this.#waiting.length === 0 && !this.#isClosed) worker.unref()
    })
    // Handled by its exit.
    worker.on('error', nothing)
    worker.once('exit', () => {
      const lost = this.#waiting
      this.#worker = null
      this.#waiting = []
      for (const answer of lost) answer(false)
    })
    return worker
  }

  /** Resolves after everything is saved. */
  async close (): Promise<void> {
    this.#isClosed = true
    const worker = this.#worker
    if (worker === null) return
    worker.ref()
    worker.postMessage(null)
    await new Promise((resolve) => worker.once('exit', resolve))
  }
}
