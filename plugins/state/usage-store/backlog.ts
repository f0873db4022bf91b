/** What the usage store does not have yet of the ledger's files. */
import { join } from 'node:path'
import { endMark, ledgerNames } from '../ledger/read.js'
import { statOf } from '../stat-of.js'
import { countRecords, readPiece, type Piece } from './pieces.js'

/** A file, and how much of it is in the store. */
export interface Unshipped {
  readonly name: string
  readonly path: string
  /** In bytes, when it was last looked at. */
  size: number
  /** Bytes that the store has. */
  shipped: number
  /** Bytes whose records are counted. */
  counted: number
  /** Number of records between `shipped` and `counted`. */
  records: number
  /** All of its whole lines are counted or shipped. */
  isCounted: boolean
  /** When the oldest of these records was written, or an older one. Milliseconds since the epoch. */
  since: number
  /** Its last line is an end mark. */
  ended: boolean
}

export class Backlog {
  readonly #path: string
  readonly #owns: (name: string) => boolean
  readonly #files = new Map<string, Unshipped>()

  /** `owns`: whether this process writes the file. */
  constructor (path: string, owns: (name: string) => boolean) {
    this.#path = path
    this.#owns = owns
  }

  /** Oldest first. */
  get files (): readonly Unshipped[] {
    return [...this.#files.values()]
  }

  get records (): number {
    return this.files.reduce((sum, { records }) => sum + records, 0)
  }

  /** Time of the oldest record that waits; null if none does. */
  get since (): number | null {
    const waiting = this.files.filter(({ records }) => records > 0)
    return waiting.length === 0 ? null : Math.min(...waiting.map(({ since }) => since))
  }

  /** Whether the store has all of a file of this length. */
  has (name: string, bytes: number): boolean {
    const file = this.#files.get(name)
    return file?.size === bytes && file.isCounted && file.records === 0
  }

  /** Looks for new files and new records. `shippedOf`: how much of a new file the store is known to have. */
  async look (shippedOf: (name: string) => number): Promise<void> {
    const names = await ledgerNames(this.#path)
    const there = new Set(names)
    for (const name of this.#files.keys()) if (!there.has(name)) this.#files.delete(name)
    for (const name of names) {
      const file = this.#files.get(name) ?? newFile(this.#path, name, shippedOf(name))
      this.#files.set(name, file)
      // Whoever makes balances anew may mark the file of a process that lives on.
      if (!file.ended || this.#owns(name)) await this.#count(file)
    }
  }

  /** Counts from the store's own positions: they may be further, by another process, or less far, in an older copy of the store. */
  async note (positions: ReadonlyMap<string, number>): Promise<void> {
    for (const [name, bytes] of positions) {
      const file = this.#files.get(name)
      if (file === undefined || file.shipped === bytes) continue
      Object.assign(file, { shipped: bytes, counted: bytes, records: 0, isCounted: false, ended: false })
      await this.#count(file)
    }
  }

  async #count (file: Unshipped): Promise<void> {
    if (!await count(file)) this.#files.delete(file.name)
  }

  /** Notes that the store has the file up to `end`, and so many records more; `time`: of the last of them. */
  shipped (
    file: Unshipped,
    { end, records, time = file.since }: { readonly end: number, readonly records: number, readonly time: number | undefined }
  ): void {
    file.shipped = end
    file.counted = Math.max(file.counted, end)
    file.records = Math.max(0, file.records - records)
    file.since = time
  }
}

function newFile (folder: string, name: string, shipped: number): Unshipped {
  return { name, path: join(folder, name), size: 0, shipped, counted: shipped, records: 0, since: 0, isCounted: false, ended: false }
}

/** False if the file is gone: another process may have found it too old. */
async function count (file: Unshipped): Promise<boolean> {
  const found = await statOf(file.path)
  if (found === null) return false
  const { size } = found
  file.isCounted = false
  file.size = size
  // Its writer took back what it could not write.
  if (size < file.counted) Object.assign(file, { counted: file.shipped, records: 0 })
  for (;;) {
    const piece = file.counted < size ? await readPiece(file.path, file.counted) : null
    // What follows may be a line that is being written, or that a crash cut off.
    if (piece === null) break
    if (file.records === 0) file.since = timeOf(piece)
    file.records += countRecords(piece, endMark)
    file.counted = piece.end
    file.ended = piece.bytes.subarray(-end.length).equals(end)
  }
  file.isCounted = true
  return true
}

const end = Buffer.from(endMark)

/** Time of its first record; now if that cannot be read. */
function timeOf ({ bytes }: Piece): number {
  return Number(/"time":(\d+)/.exec(bytes.toString('latin1', 0, 4_096))?.[1] ?? Date.now())
}
