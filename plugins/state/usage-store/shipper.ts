import { setTimeout as pause } from 'node:timers/promises'
import { Listeners } from '../listeners.js'
import type { Shipping, Trouble } from '../types.js'
import { Backlog, type Unshipped } from './backlog.js'
import { readMarks, writeMarks, type Marks } from './marks.js'
import type { UsageStoreRules } from './options.js'
import { shipFile } from './ship-file.js'
import { UsageStore } from './store.js'

interface ShipperParts {
  /** Folder of the ledger's files. */
  readonly folder: string
  readonly rules: UsageStoreRules
  /** Whether this process writes the file. */
  readonly owns: (name: string) => boolean
  readonly now: () => number
}

/** A file is shipped by its writer. If it waits longer than this, any process ships it: its writer is dead, or cannot. */
const orphanMs = 10_000
const maxWaitMs = 10_000
const closeMs = 2_000

/**
 * Ships the ledger's files to the usage store, behind every reply. A store that is away is asked again; that delays reports and nothing
 * else.
 */
export class Shipper implements Shipping {
  readonly #parts: ShipperParts
  readonly #backlog: Backlog
  readonly #troubles = new Listeners<Parameters<Trouble>>()
  readonly #closing = new AbortController()
  #store: UsageStore | null = null
  #marks: Marks
  #running: Promise<void> | null = null
  #closed = false
  #failures = 0

  constructor (parts: ShipperParts) {
    this.#parts = parts
    this.#backlog = new Backlog(parts.folder, parts.owns)
    this.#marks = readMarks(parts.folder, parts.rules)
  }

  start (): void {
    this.#running = this.#run()
  }

  readonly onTrouble = this.#troubles.add

  get unshipped (): number {
    return this.#backlog.records
  }

  get lagMs (): number {
    const { since } = this.#backlog
    return since === null ? 0 : this.#distance(since)
  }

  /** Whether the store has all of a file, so that the file need not be kept for it. */
  readonly has = (name: string, bytes: number): boolean => this.#backlog.has(name, bytes)

  /** Ships once more, for a short while: the rest waits for the next process. */
  async close (): Promise<void> {
    this.#closing.abort()
    const late = new AbortController()
    const last = this.#running?.then(async () => this.#closed ? undefined : await this.#pass())
    await Promise.race([last, pause(closeMs, undefined, { signal: late.signal }).catch(() => {})])
    late.abort()
    this.#closed = true
    await this.#leave()
  }

  async #run (): Promise<void> {
    const { signal } = this.#closing
    while (!signal.aborted) {
      await this.#pass()
      const { intervalMs } = this.#parts.rules
      const waitMs = this.#failures === 0 ? intervalMs : Math.min(maxWaitMs, intervalMs * 2 ** this.#failures) * (0.5 + Math.random() / 2)
      await pause(waitMs, undefined, { signal, ref: false }).catch(() => {})
    }
  }

  /** Ships everything that is there now. Reports failures, and never throws. */
  async #pass (): Promise<void> {
    try {
      await this.#backlog.look((name) => this.#marks.get(name) ?? 0)
      const store = await this.#open()
      for (const file of this.#backlog.files) if (this.#isOurs(file)) await shipFile(store, this.#backlog, file, this.#tell)
      await this.#keepMarks()
      // Last, so that records are shipped all the same where the role may not make tables, or while dropping an old month waits for a
      // report.
      if (store.isOpen) await store.tend()
      this.#failures = 0
    } catch (error) {
      await this.#leave()
      if (!this.#closed) this.#tell(error)
      this.#failures += 1
    }
  }

  /**
   * Connects to the store. It is asked how far all files are read when a connection or a file begins, and where others may have read
   * further. The first batch of a file does not show what a restored store lacks of earlier files.
   */
  async #open (): Promise<UsageStore> {
    const { rules, now, owns } = this.#parts
    const { files } = this.#backlog
    // Not before there is something to ship: some servers sleep while nobody is connected.
    if (this.#store?.isOpen === false && this.unshipped > 0) await this.#leave()
    const asksAll = this.#store === null || files.some(({ shipped, records }) => shipped === 0 && records > 0)
    const store = this.#store ?? await UsageStore.open(rules, now)
    this.#store = store
    if (this.#closed) throw new Error('it was closed meanwhile')
    const asked = files.filter(({ name, records }) => asksAll || (records > 0 && !owns(name))).map(({ name }) => name)
    if (asked.length > 0) await this.#backlog.note(await store.positions(asked))
    return store
  }

  #isOurs ({ name, since }: Unshipped): boolean {
    return this.#parts.owns(name) || this.#distance(since) >= orphanMs
  }

  /** Distance from now, in both directions: what a process wrote while its clock was ahead waits, too. */
  #distance (time: number): number {
    return Math.abs(this.#parts.now() - time)
  }

  async #keepMarks (): Promise<void> {
    const { files } = this.#backlog
    if (files.every(({ name, shipped }) => this.#marks.get(name) === shipped)) return
    this.#marks = new Map(files.map(({ name, shipped }) => [name, shipped]))
    await writeMarks(this.#parts.folder, this.#parts.rules, this.#marks)
  }

  readonly #tell = (error: unknown): void => this.#troubles.tell(error, this.#failures > 0)

  async #leave (): Promise<void> {
    const store = this.#store
    this.#store = null
    await store?.close()
  }
}
