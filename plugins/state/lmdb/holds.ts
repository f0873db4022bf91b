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
    const openKey = openKeyOf(names, id)
    for (const state of states) {
      const found = mayBe[state] ? this.#table.getBinaryFast(keyOf(openKey, state)) : undefined
      // Not cached: whoever changes it passes it on.
      if (found !== undefined) return readHold(found, names.group, id, state)
    }
    return undefined
  }

  /** `before`: what the file has, if the hold is not in the cache. */
  change (names: GroupNames, id: string, now: HoldRecord | null, before: HoldRecord | undefined): void {
    const known = this.#known.get(id)
    const entry = known?.group === names.group ? known : this.#newEntry(names, id, before?.state)
    if (!entry.isChanged) this.#changed.push(entry)
    entry.now = now
    entry.isChanged = true
  }

  #newEntry (names: GroupNames, id: string, stored: State | undefined): Entry {
    // A hold of another group with the same id is replaced, so its changes must be written first.
    if (this.#known.has(id)) this.flush()
    const entry: Entry = { group: names.group, id, openKey: openKeyOf(names, id), now: null, stored, isChanged: false }
    this.#known.set(id, entry)
    return entry
  }

  /** Writes the changes. */
  flush (): void {
    const changed = this.#changed
    this.#changed = []
    for (const entry of changed) this.#write(entry)
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
    if (stored !== undefined && stored !== now?.state) this.#table.removeSync(keyOf(entry.openKey, stored))
    if (now !== null) this.#table.putSync(keyOf(entry.openKey, now.state), writeHold(now))
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

function openKeyOf (names: GroupNames, id: string): string {
  return openPrefix + names.hold(id)
}

function keyOf (openKey: string, state: State): string {
  return state === 'open' ? openKey : `${state} ${openKey.slice(openPrefix.length)}`
}
