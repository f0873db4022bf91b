/**
 * Accounts and holds of all groups in an lmdb file, with what this process knows of them in front: what is changed in one
 * turn is written once at its end, and what no other process has written meanwhile is not read again.
 */
import { readAccount, readBucketRecord, readNumbers, writeAccount, writeBucket, writeQuiet } from './lmdb-codec.js'
import type { BucketRecord } from '../core/balances/buckets.js'
import { LmdbIdle } from './lmdb-idle.js'
import { StoreDownError } from '../core/balances/store-down.js'
import { LmdbHolds, states } from './lmdb-holds.js'
import { Known, type Binary } from './lmdb-known.js'
import { accountName, type AccountRecord } from '../core/balances/parties.js'
import type { GroupStore, HoldRecord } from '../core/balances/group-store.js'

export interface LmdbTables {
  readonly accounts: Binary
  readonly buckets: Binary
  readonly holds: Binary
  /** When the holds of each group are due; and under no group's name, who wrote last. */
  readonly groups: Binary
}

/** What is changed, and must be kept beyond the next start of the system: the numbers of an account or a bucket, null where it is gone. */
export type Spent = number | number[] | null

/** Where that is noted. `isLess`: it may be less than what was noted before. */
export interface SpentNotes {
  set: (name: string, value: Spent, isLess?: boolean) => void
}

/** Names are parts of keys of the store, which have at most 1,978 bytes in all. */
const maxNameBytes = 500
const writerName = 'w'

interface Quiet {
  open: number
  closed: number
}

/** Where the records of a group stand. */
interface Place {
  readonly group: string
  /** Of its account, and of when its holds are due. */
  readonly name: string
  /** What the names of its holds begin with. */
  readonly prefix: string
}

const none: readonly never[] = []

export class LmdbGroupStores {
  readonly #tables: LmdbTables
  readonly #spent: SpentNotes
  /** A number of this opening of the file alone. */
  readonly #writer = Buffer.from(crypto.getRandomValues(new Uint8Array(8)))
  readonly #accounts: Known<AccountRecord>
  readonly #buckets: Known<BucketRecord>
  readonly #quiet: Known<Quiet>
  readonly #holds: LmdbHolds
  readonly #stores = new Map<string, GroupStore>()

  readonly #max: number

  /** More than `max` accounts, buckets, holds or groups are not known for longer than a turn. */
  constructor (tables: LmdbTables, spent: SpentNotes, max = 100_000) {
    this.#max = max
    this.#tables = tables
    this.#spent = spent
    this.#accounts = new Known(tables.accounts, max, readAccount, writeAccount)
    this.#buckets = new Known(tables.buckets, max, readBucketRecord, writeBucket)
    this.#quiet = new Known(tables.groups, max, readQuiet, ({ open, closed }) => writeQuiet(open, closed))
    this.#holds = new LmdbHolds(tables.holds, max)
  }

  readonly of = (group: string): GroupStore => {
    const known = this.#stores.get(group)
    if (known !== undefined) return known
    const made = this.#newStore(group)
    if (this.#stores.size >= this.#max) this.#stores.clear()
    this.#stores.set(group, made)
    return made
  }

  /** In a transaction, before anything else: another process may have written. */
  begin (): void {
    if (!this.#wroteLast()) this.forget()
  }

  /** In the same transaction, after all: writes what was changed. */
  end (): void {
    const changed = [this.#accounts.flush(), this.#buckets.flush(), this.#quiet.flush(), this.#holds.flush()].some(Boolean)
    if (!changed) return
    if (!this.#wroteLast()) this.#tables.groups.putSync(writerName, this.#writer)
  }

  /** What the table gives is a buffer for all that is read, with a length of its own: `equals` would compare all of it. */
  #wroteLast (): boolean {
    const { length } = this.#writer
    return this.#tables.groups.getBinaryFast(writerName)?.compare(this.#writer, 0, length, 0, length) === 0
  }

  /** What is known may not be what the file has. */
  forget (): void {
    for (const known of [this.#accounts, this.#buckets, this.#quiet, this.#holds]) known.forget()
  }

  #newStore (group: string): GroupStore {
    const place: Place = { group, name: accountName(group), prefix: `${group.length}:${fit(group)}:` }
    const { name: groupName, prefix } = place
    const keyNames = new Map<string, string>()
    const idle = new LmdbIdle(this.#tables.accounts, accountName(group, ''), {
      account: (name) => this.#accounts.get(name),
      dropAccount: (name) => {
        this.#accounts.drop(name)
        this.#spent.set(name, null)
      },
      hasBuckets: (key, before) => this.#dropBuckets(bucketPrefix(group, key), before),
    })
    const accountNameOf = (key: string | null): string => {
      const known = key === null ? groupName : keyNames.get(key)
      if (known !== undefined) return known
      const name = accountName(group, fit(String(key)))
      if (keyNames.size >= this.#max) keyNames.clear()
      keyNames.set(String(key), name)
      return name
    }
    const nameOf = (key: string | null, id: string): string => bucketPrefix(group, key) + id
    let latest = { id: '', name: prefix }
    // Steps come in pairs, of which the second changes what the first has found.
    const holdName = (id: string): string => {
      if (latest.id !== id) latest = { id, name: prefix + fit(id) }
      return latest.name
    }
    return {
      account: (key) => this.#accounts.get(accountNameOf(key)),
      saveAccount: (key, account, isLess) => {
        const name = accountNameOf(key)
        this.#accounts.set(name, account)
        if (account.spent !== 0 || isLess === true) this.#spent.set(name, account.spent, isLess)
      },
      bucket: (key, id) => this.#buckets.get(nameOf(key, id)),
      saveBucket: (key, id, bucket, isLess) => {
        const { spent, amount, toldPercent, otherAmount, otherToldPercent, endsAt } = bucket
        this.#buckets.set(nameOf(key, id), bucket)
        this.#spent.set(nameOf(key, id), [spent, amount, toldPercent, endsAt ?? Infinity, otherAmount, otherToldPercent], isLess)
      },
      dropBuckets: (key, before) => this.#dropBuckets(bucketPrefix(group, key), before),
      dropIdle: (nowMs) => idle.drop(nowMs),
      hold: (id) => this.#hold(holdName(id), place, id),
      saveHold: (hold, before) => {
        this.#holds.change(holdName(hold.id), hold, before)
        const quiet = this.#quietOf(place)
        if (hold.deadline >= quiet[hold.state]) return
        quiet[hold.state] = hold.deadline
        this.#quiet.set(groupName, quiet)
      },
      dropHold: (hold) => this.#holds.change(holdName(hold.id), null, hold),
      due: (now, max) => this.#due(place, now, max),
    }
  }

  #quietOf ({ name }: Place): Quiet {
    return this.#quiet.get(name) ?? { open: Infinity, closed: Infinity }
  }

  #hold (name: string, place: Place, id: string): HoldRecord | undefined {
    const known = this.#holds.known(name)
    if (known !== undefined) return known ?? undefined
    const quiet = this.#quietOf(place)
    for (const state of states) {
      // Where none is ever due there is none.
      const found = quiet[state] === Infinity ? undefined : this.#holds.read(name, place.group, id, state)
      if (found !== undefined) return found
    }
    return undefined
  }

  #due (place: Place, now: number, max: number): readonly HoldRecord[] {
    const { group, name, prefix } = place
    const quiet = this.#quietOf(place)
    if (now < quiet.open && now < quiet.closed) return none
    this.#holds.flush()
    const due: HoldRecord[] = []
    for (const state of states) {
      if (now < quiet[state]) continue
      quiet[state] = Infinity
      for (const hold of this.#holds.of(group, prefix, state)) {
        if (hold.deadline > now || due.length === max) quiet[state] = Math.min(quiet[state], hold.deadline)
        else due.push(this.#holds.known(prefix + hold.id) ?? hold)
      }
    }
    this.#quiet.set(name, quiet)
    return due
  }

  /** Whether there are others. */
  #dropBuckets (prefix: string, before: number): boolean {
    this.#buckets.flush()
    let areLeft = false
    for (const { key: name, value } of [...this.#tables.buckets.getRange({ start: prefix, end: `${prefix}\uffff` })]) {
      if (Number(readBucketRecord(value).endsAt ?? Infinity) >= before) areLeft = true
      else {
        this.#buckets.drop(name)
        this.#spent.set(name, null)
      }
    }
    return areLeft
  }
}

/** What the names of all buckets of a party begin with. The length keeps two parties apart. */
function bucketPrefix (group: string, key: string | null): string {
  const account = accountName(group, key)
  return `b:${account.length}:${account}:`
}

/** Throws where it is too long; alone, for nothing is changed yet. */
function fit (name: string): string {
  if (name.length > maxNameBytes / 4 && Buffer.byteLength(name) > maxNameBytes) {
    throw new StoreDownError('has no room for so long a name of a key, a group or a request', { asked: false, refused: true })
  }
  return name
}

function readQuiet (value: Buffer): Quiet {
  const [open = Infinity, closed = Infinity] = readNumbers(value, 0, 2)
  return { open, closed }
}
