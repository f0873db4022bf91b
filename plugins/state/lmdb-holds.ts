/** Holds of all groups: those that this process has read or written, in front of what the file has. */
import { readHold, writeHold } from './lmdb-codec.js'
import type { HoldRecord } from '../core/balances/group-store.js'
import type { Binary } from './lmdb-known.js'

export type State = HoldRecord['state']

export const states = ['open', 'closed'] as const

interface Entry {
  readonly name: string
  /** Null where it is gone. */
  now: HoldRecord | null
  /** Where the file has it, null for nowhere. */
  stored: State | null
  isChanged: boolean
}

/** A hold's name is that of its group, a colon, and its id. */
export class LmdbHolds {
  readonly #table: Binary
  readonly #max: number
  readonly #known = new Map<string, Entry>()
  #changed: Entry[] = []

  /** More than `max` are not known for longer than a turn. */
  constructor (table: Binary, max: number) {
    this.#table = table
    this.#max = max
  }

  /** Null where it is gone; undefined where this process does not know. */
  known (name: string): HoldRecord | null | undefined {
    return this.#known.get(name)?.now
  }

  read (name: string, group: string, id: string, state: State): HoldRecord | undefined {
    const found = this.#table.getBinaryFast(`${state} ${name}`)
    if (found === undefined) return undefined
    const now = readHold(found, group, id, state)
    this.#known.set(name, { name, now, stored: state, isChanged: false })
    return now
  }

  /** `before`: what the file has, where nothing is known of it. */
  change (name: string, now: HoldRecord | null, before: HoldRecord | undefined): void {
    const known = this.#known.get(name)
    const entry = known ?? { name, now, stored: before?.state ?? null, isChanged: false }
    if (known === undefined) this.#known.set(name, entry)
    if (!entry.isChanged) this.#changed.push(entry)
    entry.now = now
    entry.isChanged = true
  }

  /** True where something was written. */
  flush (): boolean {
    if (this.#changed.length === 0) return false
    const changed = this.#changed
    this.#changed = []
    for (const entry of changed) this.#write(entry)
    if (this.#known.size > this.#max) this.#known.clear()
    return true
  }

  #write (entry: Entry): void {
    const { name, now, stored } = entry
    if (stored !== null && stored !== now?.state) this.#table.removeSync(`${stored} ${name}`)
    if (now !== null) this.#table.putSync(`${now.state} ${name}`, writeHold(now))
    entry.stored = now?.state ?? null
    entry.isChanged = false
    // Asked for again only where it is settled again.
    if (now?.state !== 'open') this.#known.delete(name)
  }

  forget (): void {
    this.#known.clear()
    this.#changed = []
  }

  /** Those of a group in the file. `prefix`: what their names begin with. */
  * of (group: string, prefix: string, state: State): Generator<HoldRecord> {
    const start = `${state} ${prefix}`
    for (const { key: name, value } of this.#table.getRange({ start, end: `${start}\uffff` })) {
      yield readHold(value, group, name.slice(start.length), state)
    }
  }
}
