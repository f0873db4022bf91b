/**
 * Accounts and holds of all groups in an lmdb file, with what this process knows of them in front: what is changed in one
 * turn is written once at its end, and what no other process has written meanwhile is not read again.
 */
import { readAccount, readBucketRecord, readHold, readNumbers, writeAccount, writeBucket, writeHold, writeQuiet } from './lmdb-codec.js'
import type { BucketRecord } from '../core/balances/buckets.js'
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

/** Names are parts of keys of the store, which have at most 1,978 bytes in all. */
const maxNameBytes = 500
const writerName = 'w'

interface Quiet {
  open: number
  closed: number
}

type State = HoldRecord['state']

const none: readonly never[] = []

export class LmdbGroupStores {
  readonly #tables: LmdbTables
  readonly #spent: Map<string, Spent>
  /** A number of this opening of the file alone. */
  readonly #writer = Buffer.from(crypto.getRandomValues(new Uint8Array(8)))
  readonly #accounts: Known<AccountRecord>
  readonly #buckets: Known<BucketRecord>
  readonly #quiet: Known<Quiet>
  readonly #holds = new Map<string, HoldRecord>()
  /** By its name: where the file has it, null for nowhere. */
  readonly #changedHolds = new Map<string, { now: HoldRecord | null, stored: State | null }>()
  readonly #stores = new Map<string, GroupStore>()

  readonly #max: number

  /** More than `max` accounts, buckets, holds or groups are not known for longer than a turn. */
  constructor (tables: LmdbTables, spent: Map<string, Spent>, max = 100_000) {
    this.#max = max
    this.#tables = tables
    this.#spent = spent
    this.#accounts = new Known(tables.accounts, max, readAccount, writeAccount)
    this.#buckets = new Known(tables.buckets, max, readBucketRecord, writeBucket)
    this.#quiet = new Known(tables.groups, max, readQuiet, ({ open, closed }) => writeQuiet(open, closed))
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
    const changed = [this.#accounts.flush(), this.#buckets.flush(), this.#quiet.flush(), this.#flushHolds()].some(Boolean)
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
    for (const known of [this.#accounts, this.#buckets, this.#quiet]) known.forget()
    this.#holds.clear()
    this.#changedHolds.clear()
  }

  #newStore (group: string): GroupStore {
    const prefix = `${group.length}:${fit(group)}:`
    const accountNameOf = (key: string | null): string => accountName(group, key === null ? null : fit(key))
    const nameOf = (key: string | null, id: string): string => bucketPrefix(group, key) + id
    return {
      account: (key) => this.#accounts.get(accountNameOf(key)),
      saveAccount: (key, account) => {
        const name = accountNameOf(key)
        this.#accounts.set(name, account)
        this.#spent.set(name, account.spent)
      },
      bucket: (key, id) => this.#buckets.get(nameOf(key, id)),
      saveBucket: (key, id, bucket) => {
        const { spent, amount, toldPercent, endsAt } = bucket
        this.#buckets.set(nameOf(key, id), bucket)
        this.#spent.set(nameOf(key, id), [spent, amount, toldPercent, endsAt ?? Infinity])
      },
      dropBuckets: (key, before) => this.#dropBuckets(bucketPrefix(group, key), before),
      hold: (id) => this.#holds.get(prefix + id) ?? this.#readHold(prefix, group, fit(id)),
      saveHold: (hold, before) => {
        this.#changeHold(prefix + hold.id, hold, before)
        const quiet = this.#quietOf(group)
        if (hold.deadline >= quiet[hold.state]) return
        quiet[hold.state] = hold.deadline
        this.#quiet.set(`g:${group}`, quiet)
      },
      dropHold: (hold) => this.#changeHold(prefix + hold.id, null, hold),
      due: (now, max) => this.#due(prefix, group, now, max),
    }
  }

  #quietOf (group: string): Quiet {
    return this.#quiet.get(`g:${group}`) ?? { open: Infinity, closed: Infinity }
  }

  #changeHold (name: string, now: HoldRecord | null, before: HoldRecord | undefined): void {
    const known = this.#changedHolds.get(name)
    if (known === undefined) this.#changedHolds.set(name, { now, stored: before?.state ?? null })
    else known.now = now
    if (now === null) this.#holds.delete(name)
    else this.#holds.set(name, now)
  }

  #readHold (prefix: string, group: string, id: string): HoldRecord | undefined {
    if (this.#changedHolds.has(prefix + id)) return undefined
    const quiet = this.#quietOf(group)
    for (const state of ['open', 'closed'] as const) {
      // Where none is ever due there is none.
      const found = quiet[state] === Infinity ? undefined : this.#tables.holds.getBinaryFast(`${state} ${prefix}${id}`)
      if (found === undefined) continue
      const hold = readHold(found, group, id, state)
      this.#holds.set(prefix + id, hold)
      return hold
    }
    return undefined
  }

  #flushHolds (): boolean {
    for (const [name, { now, stored }] of this.#changedHolds) {
      if (stored !== null && stored !== now?.state) this.#tables.holds.removeSync(`${stored} ${name}`)
      if (now !== null) this.#tables.holds.putSync(`${now.state} ${name}`, writeHold(now))
      // Asked for again only where it is settled again.
      if (now?.state === 'closed') this.#holds.delete(name)
    }
    const changed = this.#changedHolds.size > 0
    this.#changedHolds.clear()
    if (this.#holds.size > this.#max) this.#holds.clear()
    return changed
  }

  #due (prefix: string, group: string, now: number, max: number): readonly HoldRecord[] {
    const quiet = this.#quietOf(group)
    if (now < quiet.open && now < quiet.closed) return none
    this.#flushHolds()
    const due: HoldRecord[] = []
    for (const state of ['open', 'closed'] as const) {
      if (now < quiet[state]) continue
      quiet[state] = Infinity
      for (const { key: name, value } of this.#tables.holds.getRange({ start: `${state} ${prefix}`, end: `${state} ${prefix}\uffff` })) {
        const hold = readHold(value, group, name.slice(state.length + 1 + prefix.length), state)
        if (hold.deadline > now || due.length === max) quiet[state] = Math.min(quiet[state], hold.deadline)
        else due.push(this.#holds.get(prefix + hold.id) ?? hold)
      }
    }
    this.#quiet.set(`g:${group}`, quiet)
    return due
  }

  #dropBuckets (prefix: string, before: number): void {
    this.#buckets.flush()
    for (const { key: name, value } of [...this.#tables.buckets.getRange({ start: prefix, end: `${prefix}\uffff` })]) {
      if (Number(readBucketRecord(value).endsAt ?? Infinity) >= before) continue
      this.#tables.buckets.removeSync(name)
      this.#buckets.drop(name)
      this.#spent.set(name, null)
    }
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
    throw new RangeError('a name does not fit into the key size of the store')
  }
  return name
}

function readQuiet (value: Buffer): Quiet {
  const [open = Infinity, closed = Infinity] = readNumbers(value, 0, 2)
  return { open, closed }
}
