import type { Database } from 'lmdb'

export type Binary = Database<Buffer, string>

/** Cache of one table: records that this process has read or written, and which of them it has changed. */
export class Known<T> {
  readonly #table: Binary
  readonly #read: (value: Buffer) => T
  readonly #write: (record: T) => Buffer
  readonly #known = new Map<string, T>()
  readonly #changed = new Map<string, T>()
  readonly #max: number

  /** At most `max` records are cached for longer than a turn. */
  constructor (table: Binary, max: number, read: (value: Buffer) => T, write: (record: T) => Buffer) {
    this.#table = table
    this.#max = max
    this.#read = read
    this.#write = write
  }

  get (name: string): T | undefined {
    const known = this.#known.get(name)
    if (known !== undefined) return known
    const stored = this.#table.getBinaryFast(name)
    if (stored === undefined) return undefined
    const record = this.#read(stored)
    this.#known.set(name, record)
    return record
  }

  set (name: string, record: T): void {
    this.#known.set(name, record)
    this.#changed.set(name, record)
  }

  drop (name: string): void {
    this.#table.removeSync(name)
    this.#known.delete(name)
    this.#changed.delete(name)
  }

  /** True if anything was written. */
  flush (): boolean {
    if (this.#changed.size === 0) return false
    for (const [name, record] of this.#changed) this.#table.putSync(name, this.#write(record))
    this.#changed.clear()
    if (this.#known.size > this.#max) this.#known.clear()
    return true
  }

  forget (): void {
    this.#known.clear()
    this.#changed.clear()
  }
}
