import { setImmediate as turn, setTimeout as pause } from 'node:timers/promises'
import { StoreDownError } from '../../core/balances/store-down.js'
import { Listeners } from '../listeners.js'
import { writeFrame } from './frame.js'
import { readLedger, readUnsettled } from './read.js'
import { LedgerWriter, type FileShipping, type Span } from './write.js'
import type { Ledger, LedgerConfig, LedgerRange, LedgerRecord, Shipping, Trouble } from '../types.js'

const retryMs = 1_000
/** How far back records are settled again: charges are remembered for as long (`rememberMs`). */
const recoverMs = 24 * 60 * 60_000
/** Time between two writes: records of this time share one. Fewer waits for the disk leave it free for other work. */
const gatherMs = 25

/** So many records are acknowledged, and then charged, before requests have their turn. */
const batchRecords = 100
/** So many of these share a write: a longer text would hold up requests, too. */
const maxBatches = 100

/** Records that share a promise. */
interface Batch {
  readonly records: LedgerRecord[]
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/**
 * A ledger of plain files. Each process appends to its own files, so that two writers never meet; readers read all of them. Records that
 * arrive while a write runs share the next one, and are acknowledged when the disk has them.
 */
export class FileLedger implements Ledger {
  readonly #path: string
  readonly #writer: LedgerWriter
  readonly #now: () => number
  readonly #maxWaiting: number
  /** Records for the next writes. */
  readonly #next: Batch[] = []
  /** Resolves when the last of these is kept. One promise for many: one for each would cost a request more than its record does. */
  #kept = Promise.resolve()
  /** Number of records that are not kept yet. */
  #waiting = 0
  #writing: Promise<void> | null = null
  #wroteAt = 0
  #closing = false
  #failing = false
  /** Callers that wait for a write, successful or not. */
  #flushes: Array<() => void> = []
  readonly #troubles = new Listeners<Parameters<Trouble>>()
  #allSettled = true

  /** `maxWaiting` records may wait for a disk that accepts none; one more is refused with an error. */
  constructor (path: string, config: LedgerConfig = {}, now: () => number = Date.now, maxWaiting = 100_000) {
    this.#path = path
    this.#writer = new LedgerWriter(path, config, now)
    this.#now = now
    this.#maxWaiting = maxWaiting
  }

  append (record: LedgerRecord): Promise<void> {
    if (this.#waiting >= this.#maxWaiting) return Promise.reject(new StoreDownError('cannot keep more usage records'))
    const last = this.#next.at(-1)
    if (last !== undefined && last.records.length < batchRecords) last.records.push(record)
    else this.#kept = new Promise((resolve, reject) => { this.#next.push({ records: [record], resolve, reject }) })
    this.#waiting += 1
    this.#writing ??= this.#drain()
    return this.#kept
  }

  async flush (): Promise<void> {
    await Promise.race([this.#writing, new Promise<void>((resolve) => this.#flushes.push(resolve))])
  }

  /** From now on no file is deleted before it is shipped completely. */
  shipBy (shipping: FileShipping): void {
    this.#writer.shipping = shipping
  }

  get shipping (): Shipping | null {
    return this.#writer.shipping
  }

  /** Whether this process created the file. */
  readonly owns = (name: string): boolean => this.#writer.own.has(name)

  readonly onTrouble = this.#troubles.add

  read (range?: LedgerRange): AsyncIterable<LedgerRecord> {
    return readLedger(this.#path, range)
  }

  unsettled (): AsyncIterable<LedgerRecord> {
    return readUnsettled(this.#path, this.#now() - recoverMs)
  }

  noteUnsettled (): void {
    this.#allSettled = false
  }

  async close (): Promise<void> {
    this.#closing = true
    await this.#writing
    await this.#writer.end(this.#allSettled)
  }

  async #drain (): Promise<void> {
    while (this.#next.length > 0) {
      await pause(Math.max(0, this.#wroteAt + gatherMs - performance.now()))
      this.#wroteAt = performance.now()
      await this.#keep(this.#next.splice(0, maxBatches))
    }
    this.#writing = null
    this.#flushes = []
  }

  /** Tries until the disk accepts them. Closing the ledger waits for one more try. */
  async #keep (batches: readonly Batch[]): Promise<void> {
    let end = ({ resolve }: Batch): void => resolve()
    try {
      const records = batches.flatMap((batch) => batch.records)
      const text = Buffer.from(records.map(writeFrame).join(''))
      const span = spanOf(records)
      while (!await this.#write(text, span)) await pause(retryMs)
    } catch (error) {
      end = ({ reject }) => reject(error)
    }
    for (const batch of batches) {
      this.#waiting -= batch.records.length
      end(batch)
      await turn()
    }
  }

  /** False if the disk does not accept it. Throws that error instead once nobody tries again. */
  async #write (text: Buffer, span: Span): Promise<boolean> {
    try {
      await this.#writer.write(text, span)
      this.#failing = false
      return true
    } catch (cause) {
      this.#tell(cause)
      if (this.#closing) throw new StoreDownError('could not keep usage records', { cause })
      return false
    }
  }

  #tell (cause: unknown): void {
    for (const resolve of this.#flushes.splice(0)) resolve()
    this.#troubles.tell(cause, this.#failing)
    this.#failing = true
  }
}

function spanOf (records: readonly LedgerRecord[]): Span {
  return records.reduce(
    ({ oldest, newest }, { time }) => ({ oldest: Math.min(oldest, time), newest: Math.max(newest, time) }),
    { oldest: Infinity, newest: -Infinity }
  )
}
