/** Holds of all groups: a cache of those that this process has read or written, in front of the file. */
import { readHold, writeHold } from './codec.js'
import type { HoldRecord } from '../../core/balances/group-store.js'
import type { Binary } from './known.js'
import type { GroupNames } from './names.js'

export type State = HoldRecord['state']

export const states = ['open', 'closed'] as const

interface Entry {
  readonly group: string
  readonly id: string
  /** Its key while it is open. Stored, so that the same string is encoded each time. */
  readonly openKey: string
  /** Null if it is gone. */
  now: HoldRecord | null
  /** State under which the file has it; undefined if it does not. */
  stored: State | undefined
  isChanged: boolean
}

const openPrefix = 'open '

export class LmdbHolds {
  readonly #table: Binary
  /** By hold id, which is the id of a request. Those that are open: none stays for longer than its request. */
  readonly #known = new Map<string, Entry>()
  #changed: Entry[] = []
  /** Holds that are not in the file, known until the end of the turn: most are made in it, the others belong to refused requests. */
  #absent: Entry[] = []
  #hasWritten = false

  constructor (table: Binary) {
    this.#table = table
  }

  /** Null if it is gone; undefined if it is not in the cache. */
  known ({ group }: GroupNames, id: string): HoldRecord | null | undefined {
    const known = this.#known.get(id)
    return known?.group === group ? known.now : undefined
  }

  /**
   * `mayBe`: the states in which the file may have it. Throws if its name is too long for the file, before anything is changed for it:
   * whoever makes a hold reads it first.
   */
  read (names: GroupNames, id: string, mayBe: Readonly<Record<State, boolean>>): HoldRecord | undefined {
    const entry = newEntry(names, id, undefined)
    for (const state of states) {
      const found = mayBe[state] ? this.#table.getBinaryFast(keyOf(entry, state)) : undefined
      // Not cached: whoever changes it passes it on.
      if (found !== undefined) return readHold(found, names.group, id, state)
    }
    this.#know(entry)
    this.#absent.push(entry)
    return undefined
  }

  /** `before`: what the file has, if the hold is not in the cache. */
  change (names: GroupNames, id: string, now: HoldRecord | null, before: HoldRecord | undefined): void {
    const known = this.#known.get(id)
    const entry = known?.group === names.group ? known : newEntry(names, id, before?.state)
    if (entry !== known) this.#know(entry)
    if (!entry.isChanged) this.#changed.push(entry)
    entry.now = now
    entry.isChanged = true
  }

  #know (entry: Entry): void {
    // A hold of another group with the same id is replaced, so its changes must be written first.
    if (this.#known.has(entry.id)) this.flush()
    this.#known.set(entry.id, entry)
  }

  /** Writes the changes. */
  flush (): void {
    const changed = this.#changed
    this.#changed = []
    for (const entry of changed) this.#write(entry)
    for (const { now, id } of this.#absent) if (now === null) this.#known.delete(id)
    this.#absent = []
    if (changed.length > 0) this.#hasWritten = true
  }

  /** The same at the end of a turn. True if anything was written in it. */
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
    // Needed again only if it is settled again.
    if (now?.state !== 'open') this.#known.delete(entry.id)
  }

  forget (): void {
    this.#known.clear()
    this.#changed = []
  }

  /** A group's holds in the file. */
  * of ({ group, holds }: GroupNames, state: State): Generator<HoldRecord> {
    const start = `${state} ${holds}`
    for (const { key: name, value } of this.#table.getRange({ start, end: `${start}\uffff` })) {
      yield readHold(value, group, name.slice(start.length), state)
    }
  }
}

function newEntry (names: GroupNames, id: string, stored: State | undefined): Entry {
  return { group: names.group, id, openKey: openPrefix + names.hold(id), now: null, stored, isChanged: false }
}

function keyOf ({ openKey }: Entry, state: State): string {
  return state === 'open' ? openKey : `${state} ${openKey.slice(openPrefix.length)}`
}
