/** Holds of all groups: those that this process has read or written, in front of what the file has. */
import { readHold, writeHold } from './codec.js'
import type { HoldRecord } from '../../core/balances/group-store.js'
import type { Binary } from './known.js'

export type State = HoldRecord['state']

export const states = ['open', 'closed'] as const

/** How the holds of a group are called in the file. */
export interface HoldNames {
  readonly group: string
  /** Of one of them, behind its state and a blank. */
  readonly hold: (id: string) => string
}

interface Entry {
  readonly group: string
  readonly id: string
  /** Its key while it is open. The same text each time, for its bytes are looked at each time. */
  readonly openKey: string
  /** Null where it is gone. */
  now: HoldRecord | null
  /** Where the file has it, undefined for nowhere. */
  stored: State | undefined
  isChanged: boolean
}

const openPrefix = 'open '

export class LmdbHolds {
  readonly #table: Binary
  readonly #max: number
  /** By id, which is a request's own. */
  readonly #known = new Map<string, Entry>()
  #changed: Entry[] = []
  /** Those that the file did not have, known until the end of the turn: most are made in it, the others are of who was refused. */
  #absent: Entry[] = []
  #hasWritten = false

  /** More than `max` are not known for longer than a turn. */
  constructor (table: Binary, max: number) {
    this.#table = table
    this.#max = max
  }

  /** Null where it is gone; undefined where this process does not know. */
  known ({ group }: HoldNames, id: string): HoldRecord | null | undefined {
    const known = this.#known.get(id)
    return known?.group === group ? known.now : undefined
  }

  /**
   * `mayBe`: the states in which the file may have it. Throws where it has no room for its name, before anything is changed for it: whoever
   * makes a hold asks for it first.
   */
  read (names: HoldNames, id: string, mayBe: Readonly<Record<State, boolean>>): HoldRecord | undefined {
    const entry = newEntry(names, id, undefined)
    for (const state of states) {
      const found = mayBe[state] ? this.#table.getBinaryFast(keyOf(entry, state)) : undefined
      if (found === undefined) continue
      const now = readHold(found, names.group, id, state)
      entry.now = now
      entry.stored = state
      this.#know(entry)
      return now
    }
    this.#know(entry)
    this.#absent.push(entry)
    return undefined
  }

  /** `before`: what the file has, where nothing is known of it. */
  change (names: HoldNames, id: string, now: HoldRecord | null, before: HoldRecord | undefined): void {
    const known = this.#known.get(id)
    const entry = known?.group === names.group ? known : newEntry(names, id, before?.state)
    if (entry !== known) this.#know(entry)
    if (!entry.isChanged) this.#changed.push(entry)
    entry.now = now
    entry.isChanged = true
  }

  #know (entry: Entry): void {
    // Another group's by the same id gives way, and the file must have what was changed of it.
    if (this.#known.has(entry.id)) this.flush()
    this.#known.set(entry.id, entry)
  }

  /** Writes what was changed. */
  flush (): void {
    const changed = this.#changed
    this.#changed = []
    for (const entry of changed) this.#write(entry)
    for (const { now, id } of this.#absent) if (now === null) this.#known.delete(id)
    this.#absent = []
    if (this.#known.size > this.#max) this.#known.clear()
    if (changed.length > 0) this.#hasWritten = true
  }

  /** The same at the end of a turn. True where something was written in it. */
  end (): boolean {
    this.flush()
    const hasWritten = this.#hasWritten
    this.#hasWritten = false
    return hasWritten
  }

  #write (entry: Entry): void {
    const { now, stored } = entry
    if (stored !== undefined && stored !== now?.state) this.#table.removeSync(keyOf(entry, stored))
    if (now !== null) this.#table.putSync(keyOf(entry, now.state), writeHold(now))
    entry.stored = now?.state
    entry.isChanged = false
    // Asked for again only where it is settled again.
    if (now?.state !== 'open') this.#known.delete(entry.id)
  }

  forget (): void {
    this.#known.clear()
    this.#changed = []
    this.#absent = []
    this.#hasWritten = false
  }

  /** Those of a group in the file. `prefix`: what their names begin with. */
  * of (group: string, prefix: string, state: State): Generator<HoldRecord> {
    const start = `${state} ${prefix}`
    for (const { key: name, value } of this.#table.getRange({ start, end: `${start}\uffff` })) {
      yield readHold(value, group, name.slice(start.length), state)
    }
  }
}

function newEntry (names: HoldNames, id: string, stored: State | undefined): Entry {
  return { group: names.group, id, openKey: openPrefix + names.hold(id), now: null, stored, isChanged: false }
}

function keyOf ({ openKey }: Entry, state: State): string {
  return state === 'open' ? openKey : `${state} ${openKey.slice(openPrefix.length)}`
}
