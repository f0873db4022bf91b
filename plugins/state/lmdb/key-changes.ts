import { Listeners } from '../listeners.js'
import type { LmdbFiles } from './open.js'
import type { KeyChange } from '../types.js'

/** How often to look for changes of other processes. */
const watchMs = 200

/**
 * Changes of keys, numbered in the file that the processes of one host share: each process looks for numbers that it has not seen. `kept`
 * of them stay in the file; a process that is further behind treats everything as changed.
 */
export class KeyChanges {
  readonly listeners = new Listeners<[KeyChange]>()
  readonly #changes: LmdbFiles['changes']
  readonly #kept: number
  readonly #timer: NodeJS.Timeout
  #seen: number

  constructor (changes: LmdbFiles['changes'], kept: number) {
    this.#changes = changes
    this.#kept = kept
    this.#seen = this.#newest()
    this.#timer = setInterval(() => this.look(), watchMs).unref()
  }

  /** Adds a change. Must be called in a transaction. */
  add (change: KeyChange): void {
    const next = this.#newest() + 1
    this.#changes.putSync(next, change)
    this.#changes.removeSync(next - this.#kept)
  }

  /** Notifies the listeners of what any process has added since the last look. */
  look (): void {
    const missed = [...this.#changes.getRange({ start: this.#seen + 1 })]
    const first = missed[0]
    if (first === undefined) return
    const isGap = first.key > this.#seen + 1
    this.#seen = missed.reduce((_, { key }) => key, this.#seen)
    if (isGap) this.listeners.tell({ group: '*' })
    else for (const { value } of missed) this.listeners.tell(value)
  }

  close (): void {
    clearInterval(this.#timer)
  }

  #newest (): number {
    return [...this.#changes.getKeys({ reverse: true, limit: 1 })][0] ?? 0
  }
}
