/** Notes what each account has spent where a power failure leaves it. */
import type { DurableThread, Entries } from './lmdb-durable.js'
import type { Spent } from './lmdb-group-stores.js'

/** One write at a time. What could not be saved stays in `dirty`. */
export class SpentWriter {
  readonly #thread: DurableThread
  readonly #dirty: Map<string, Spent>
  #writing: Promise<void> | null = null

  constructor (thread: DurableThread, dirty: Map<string, Spent>) {
    this.#thread = thread
    this.#dirty = dirty
  }

  write (): void {
    if (this.#dirty.size > 0) this.#writing ??= this.#write().finally(() => { this.#writing = null })
  }

  async #write (): Promise<void> {
    const written = [...this.#dirty]
    if (!await this.#thread.save(entriesOf(written))) return
    for (const [name, value] of written) if (this.#dirty.get(name) === value) this.#dirty.delete(name)
  }

  async close (): Promise<void> {
    await this.#writing
  }
}

export function entriesOf (spent: Iterable<readonly [name: string, value: Spent]>): Entries {
  return Array.from(spent, ([name, value]) => ['spent', name, value])
}
