/** Writes into the file that waits for the disk, in a thread: one that stands still holds up no request. */
import { extname } from 'node:path'
import { Worker, type MessagePort } from 'node:worker_threads'
import { threadOptions } from '../../core/thread-options.js'
import { openDurable, type DurableFile, type StoredNote } from './durable-file.js'
import type { Spent } from './group-stores.js'

/** `isLess`: what stands there may be more, and gives way. */
export type SpentEntry = readonly [table: 'spent', name: string, value: Spent, isLess?: boolean]

/** A name and what it stands for from now on, null for nothing. */
export type Entry =
  | SpentEntry
  | readonly [table: 'notes', name: string, value: StoredNote | null]
export type Entries = readonly Entry[]

const nothing = (): void => {}

/** False where the disk takes nothing. Not asynchronously: the package ends the process where such a write fails. */
export function saveEntries ({ writeDurable, spent, notes }: DurableFile, entries: Entries): boolean {
  try {
    writeDurable(() => {
      for (const [table, name, value, isLess] of entries) {
        if (value === null) (table === 'spent' ? spent : notes).removeSync(name)
        else if (table === 'notes') notes.putSync(name, value)
        // Another process may have written a newer one.
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
 * The thread's side: saves what each message has, and answers each whether it could; null is the end. What came while the disk was busy
 * is one transaction.
 */
export async function serveDurable (port: MessagePort | null, path: string): Promise<void> {
  if (port === null) return
  const file = await openDurable(path)
  let waiting: Entries[] = []
  const save = (): void => {
    const together = waiting
    waiting = []
    const isSaved = saveEntries(file, together.flat())
    for (let count = together.length; count > 0; count -= 1) port.postMessage(isSaved)
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

/** This process's side. The thread is begun with the first write, and another one where it has ended. */
export class DurableThread {
  readonly #path: string
  #worker: Worker | null = null
  #waiting: Array<(isSaved: boolean) => void> = []
  #isClosed = false

  constructor (path: string) {
    this.#path = path
  }

  /** False where it could not be saved. */
  async save (entries: Entries): Promise<boolean> {
    if (this.#isClosed) return false
    this.#worker ??= this.#begin()
    // It holds the process while something is to be saved.
    this.#worker.ref()
    this.#worker.postMessage(entries)
    return await new Promise<boolean>((resolve) => { this.#waiting.push(resolve) })
  }

  #begin (): Worker {
    const file = new URL(`./durable-thread${extname(import.meta.url)}`, import.meta.url)
    const worker = new Worker(file, { ...threadOptions(file), workerData: this.#path })
    worker.on('message', (isSaved: boolean) => {
      this.#waiting.shift()?.(isSaved)
      // Whoever closes waits for its end.
      if (this.#waiting.length === 0 && !this.#isClosed) worker.unref()
    })
    // It is heard of by its end.
    worker.on('error', nothing)
    worker.once('exit', () => {
      const lost = this.#waiting
      this.#worker = null
      this.#waiting = []
      for (const answer of lost) answer(false)
    })
    return worker
  }

  /** After all that was to be saved. */
  async close (): Promise<void> {
    this.#isClosed = true
    const worker = this.#worker
    if (worker === null) return
    worker.ref()
    worker.postMessage(null)
    await new Promise((resolve) => worker.once('exit', resolve))
  }
}
