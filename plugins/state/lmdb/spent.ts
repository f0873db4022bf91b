/** Notes what each account has spent in the file that survives a power failure. */
import { bucketNumbers, readAccount } from './codec.js'
import type { DurableThread, Entries, SpentEntry } from './durable.js'
import type { LmdbTables, Spent, SpentNotes } from './group-stores.js'
import { isBucketName } from './names.js'

/** Reads what an account or a bucket has spent now, whichever process has changed it last. */
export function spentOf ({ accounts, buckets }: Pick<LmdbTables, 'accounts' | 'buckets'>): (name: string) => Spent {
  // Otherwise it reads as of the last read within a millisecond, in which the thread may have saved.
  accounts.resetReadTxn()
  return (name) => {
    const isBucket = isBucketName(name)
    const found = (isBucket ? buckets : accounts).getBinaryFast(name)
    if (found === undefined) return null
    if (!isBucket) return readAccount(found).spent
    const [spent = 0, , ...others] = bucketNumbers(found)
    return [spent, ...others]
  }
}

/** Accounts and buckets that this process has changed since the last save. */
export class SpentChanges implements SpentNotes {
  readonly #look: () => (name: string) => Spent
  #names = new Set<string>()
  #lessened = new Set<string>()

  constructor (look: () => (name: string) => Spent) {
    this.#look = look
  }

  get size (): number {
    return this.#names.size
  }

  /** `isLess`: a request that was charged what it held turned out to have used less. */
  add (name: string, isLess = false): void {
    this.#names.add(name)
    if (isLess) this.#lessened.add(name)
  }

  /** With what they have spent now. They are no changes any more. */
  take (): readonly SpentEntry[] {
    const now = this.#look()
    const entries = Array.from(this.#names, (name): SpentEntry => ['spent', name, now(name), this.#lessened.has(name)])
    this.#names = new Set()
    this.#lessened = new Set()
    return entries
  }

  /** Keeps those that are to be saved again. One that replaced a greater value may have replaced what another process saved meanwhile. */
  putBack (entries: readonly SpentEntry[], isSaved: boolean): void {
    if (!isSaved) {
      for (const [, name, , isLess] of entries) this.add(name, isLess)
      return
    }
    const now = this.#look()
    for (const [, name, value, isLess] of entries) if (isLess === true && String(now(name)) !== String(value)) this.add(name)
  }
}

/** One write at a time. What could not be saved is among the changes again. */
export class SpentWriter {
  readonly #save: (entries: Entries) => Promise<boolean>
  readonly #changes: SpentChanges
  #writing: Promise<void> | null = null

  constructor (thread: Pick<DurableThread, 'save'>, changes: SpentChanges) {
    this.#save = async (entries) => await thread.save(entries)
    this.#changes = changes
  }

  write (): void {
    // A timer calls this: an error would end the process. What could not be read stays among the changes.
    if (this.#changes.size > 0) this.#writing ??= this.#write().catch(() => {}).finally(() => { this.#writing = null })
  }

  async #write (): Promise<void> {
    const entries = this.#changes.take()
    // A system that lets no more threads begin makes this throw.
    const isSaved = await this.#save(entries).catch(() => false)
    this.#changes.putBack(entries, isSaved)
  }

  async close (): Promise<void> {
    await this.#writing
  }
}
