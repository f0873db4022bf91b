/** Notes what each account has spent where a power failure leaves it: in a file that waits for the disk. */
import { extname } from 'node:path'
import { Worker, type MessagePort } from 'node:worker_threads'
import { threadOptions } from '../core/thread-options.js'
import type { Spent } from './lmdb-group-stores.js'
import { openDurable, type LmdbFiles } from './lmdb-open.js'

type Files = Pick<LmdbFiles, 'durable' | 'spent'>
const nothing = (): void => {}

type Entries = ReadonlyArray<readonly [name: string, spent: Spent]>

/** False where the disk takes nothing. Not asynchronously: the package ends the process where such a write fails. */
export function saveSpent ({ durable, spent }: Files, entries: Entries): boolean {
  try {
    durable.transactionSync(() => {
      for (const [name, value] of entries) {
        // Another process may have written a newer one.
        if (value === null) spent.removeSync(name)
        else if (numberOf(value) > numberOf(spent.get(name))) spent.putSync(name, value)
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

/** The thread's side: saves what each message has, and says whether it could; null is the end. */
export async function serveSpent (port: MessagePort | null, path: string): Promise<void> {
  if (port === null) return
  const files = await openDurable(path)
  port.on('message', (entries: Entries | null) => {
    if (entries !== null) port.postMessage(saveSpent(files, entries))
    else files.durable.close().finally(() => port.close())
  })
}

/**
 * Saves in a thread, which a disk that stands still holds up in place of the event loop. What could not be saved stays in `dirty`.
 * One write at a time; the thread is begun with the first.
 */
export class SpentWriter {
  readonly #path: string
  readonly #dirty: Map<string, Spent>
  #worker: Worker | null = null
  #writing: Promise<void> | null = null
  #answered: (isSaved: boolean) => void = nothing

  constructor (path: string, dirty: Map<string, Spent>) {
    this.#path = path
    this.#dirty = dirty
  }

  write (): void {
    if (this.#dirty.size > 0) this.#writing ??= this.#write().finally(() => { this.#writing = null })
  }

  async #write (): Promise<void> {
    const entries = [...this.#dirty]
    this.#worker ??= this.#begin()
    this.#worker.postMessage(entries)
    const isSaved = await new Promise<boolean>((resolve) => { this.#answered = resolve })
    if (isSaved) for (const [name, value] of entries) if (this.#dirty.get(name) === value) this.#dirty.delete(name)
  }

  #begin (): Worker {
    const file = new URL(`./lmdb-spent-thread${extname(import.meta.url)}`, import.meta.url)
    const worker = new Worker(file, { ...threadOptions(file), workerData: this.#path })
    worker.unref()
    worker.on('message', (isSaved: boolean) => this.#answered(isSaved))
    // It is heard of by its end. Another one begins with the next write.
    worker.on('error', nothing)
    worker.once('exit', () => {
      this.#worker = null
      this.#answered(false)
    })
    return worker
  }

  async close (): Promise<void> {
    // It holds the process until its end, and nothing else may.
    this.#worker?.ref()
    await this.#writing
    const worker = this.#worker
    if (worker === null) return
    worker.postMessage(null)
    await new Promise((resolve) => worker.once('exit', resolve))
  }
}
