/** Notes what each account has spent in the file that survives a power failure. */
import type { DurableThread, Entries, SpentEntry } from './durable.js'
import type { Spent, SpentNotes } from './group-stores.js'

/** Changes since the last save. */
export class SpentChanges implements SpentNotes {
  readonly #values = new Map<string, Spent>()
  readonly #lessened = new Set<string>()

  get size (): number {
    return this.#values.size
  }

  /** `isLess`: a request that was charged what it held turned out to have used less. */
  set (name: string, value: Spent, isLess = false): void {
    this.#values.set(name, value)
    if (isLess) this.#lessened.add(name)
  }

  get entries (): readonly SpentEntry[] {
    return Array.from(this.#values, ([name, value]) => ['spent', name, value, this.#lessened.has(name)])
  }

  /** Removes what was saved. Entries that changed again meanwhile stay. */
  saved (entries: readonly SpentEntry[]): void {
    for (const [, name, value] of entries) {
      if (this.#values.get(name) !== value) continue
      this.#values.delete(name)
      this.#lessened.delete(name)
    }
  }
}

/** One write at a time. What could not be saved stays among the changes. */
export class SpentWriter {
  readonly #save: (entries: Entries) => Promise<boolean>
  readonly #changes: SpentChanges
  #writing: Promise<void> | null = null

  constructor (thread: Pick<DurableThread, 'save'>, changes: SpentChanges) {
    this.#save = async (entries) => await thread.save(entries)
    this.#changes = changes
  }

  write (): void {
    if (this.#changes.size > 0) this.#writing ??= this.#write().finally(() => { this.#writing = null })
  }

  async #write (): Promise<void> {
    const { entries } = this.#changes
    if (await this.#save(entries)) this.#changes.saved(entries)
  }

  async close (): Promise<void> {
    await this.#writing
  }
}
