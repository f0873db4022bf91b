/**
 * Accounts and holds of all groups in an lmdb file, with a cache of this process in front: changes of one turn are written once at its end,
 * and what no other process has written meanwhile is not read again.
 */
import { readAccount, readBucketRecord, readNumbers, writeAccount, writeBucket, writeQuiet } from './codec.js'
import type { BucketRecord } from '../../core/balances/buckets.js'
import { idleDropper } from './idle.js'
import { LmdbHolds, states } from './holds.js'
import { Known, type Binary } from './known.js'
import { GroupNames } from './names.js'
import type { AccountRecord, GroupStore, HoldRecord } from '../../core/balances/group-store.js'

export interface LmdbTables {
  readonly accounts: Binary
  readonly buckets: Binary
  readonly holds: Binary
  /** When the holds of each group are due; and, under the name of no group, who wrote last. */
  readonly groups: Binary
}

/** A change that must survive a restart of the system: what an account has spent, or a bucket's numbers but `held`; null if it is gone. */
export type Spent = number | number[] | null

/** Where the names of what has such changes are noted. `isLess`: it may be less than noted before. */
export interface SpentNotes {
  add: (name: string, isLess?: boolean) => void
}

const writerName = 'w'

/** No hold is due later than this from now, or later than its own time to live if that is longer. Other processes may have a longer one. */
const aheadMs = 60 * 60_000

interface Quiet {
  open: number
  closed: number
}

const none: readonly never[] = []

export class LmdbGroupStores {
  readonly #tables: LmdbTables
  readonly #spent: SpentNotes
  /** Identifies this opening of the file. */
  readonly #writer = Buffer.from(crypto.getRandomValues(new Uint8Array(8)))
  readonly #accounts: Known<AccountRecord>
  readonly #buckets: Known<BucketRecord>
  readonly #quiet: Known<Quiet>
  readonly #holds: LmdbHolds
  readonly #stores = new Map<string, GroupStore>()
  readonly #holdTtlMs: number
  readonly #max: number

  /** At most `max` accounts, buckets or groups are cached for longer than a turn. */
  constructor (tables: LmdbTables, spent: SpentNotes, holdTtlMs: number, max = 100_000) {
    this.#holdTtlMs = holdTtlMs
    this.#max = max
    this.#tables = tables
    this.#spent = spent
    this.#accounts = new Known(tables.accounts, max, readAccount, writeAccount)
    this.#buckets = new Known(tables.buckets, max, readBucketRecord, writeBucket)
    this.#quiet = new Known(tables.groups, max, readQuiet, ({ open, closed }) => writeQuiet(open, closed))
    this.#holds = new LmdbHolds(tables.holds)
  }

  readonly of = (group: string): GroupStore => {
    const known = this.#stores.get(group)
    if (known !== undefined) return known
    const made = this.#newStore(group)
    if (this.#stores.size >= this.#max) this.#stores.clear()
    this.#stores.set(group, made)
    return made
  }

  /** First step of a transaction: forgets the cache if another process has written. */
  begin (): void {
    if (!this.#wroteLast()) this.forget()
  }

  /** Last step of a transaction: writes the changes. */
  end (): void {
    const changed = [this.#accounts.flush(), this.#buckets.flush(), this.#quiet.flush(), this.#holds.end()].some(Boolean)
    if (!changed) return
    if (!this.#wroteLast()) this.#tables.groups.putSync(writerName, this.#writer)
  }

  /** The table returns a buffer shared by all reads, with a length of its own: `equals` would compare all of it. */
  #wroteLast (): boolean {
    const { length } = this.#writer
    return this.#tables.groups.getBinaryFast(writerName)?.compare(this.#writer, 0, length, 0, length) === 0
  }

  /** Empties the cache: it may not match the file. */
  forget (): void {
    for (const known of [this.#accounts, this.#buckets, this.#quiet, this.#holds]) known.forget()
  }

  #newStore (group: string): GroupStore {
    const names = new GroupNames(group, this.#max)
    const dropBuckets = (key: string | null, before: number): boolean => this.#dropBuckets(names.buckets(key), before)
    const dropIdle = idleDropper(this.#tables.accounts, names.accounts, {
      account: (name) => this.#accounts.get(name),
      dropAccount: (name) => {
        this.#accounts.drop(name)
        this.#spent.add(name)
      },
      dropBuckets,
    })
    return {
      account: (key) => this.#accounts.get(names.account(key)),
      saveAccount: (key, account, isLess) => {
        const name = names.account(key)
        this.#accounts.set(name, account)
        if (account.spent !== 0 || isLess === true) this.#spent.add(name, isLess)
      },
      bucket: (key, id) => this.#buckets.get(names.bucket(key, id)),
      saveBucket: (key, id, bucket, isLess) => {
        const name = names.bucket(key, id)
        this.#buckets.set(name, bucket)
        this.#spent.add(name, isLess)
      },
      dropBuckets,
      dropIdle,
      hold: (id, isFirst) => this.#hold(names, id, isFirst),
      saveHold: (hold, before) => this.#saveHold(names, hold, before),
      dropHold: (hold) => this.#holds.change(names, hold.id, null, hold),
      due: (now, max) => this.#due(names, now, max),
    }
  }

  #quietOf ({ own }: GroupNames): Quiet {
    return this.#quiet.get(own) ?? { open: Infinity, closed: Infinity }
  }

  #hold (names: GroupNames, id: string, isFirst = false): HoldRecord | undefined {
    const known = this.#holds.known(names, id)
    if (known !== undefined) return known ?? undefined
    const { open, closed } = this.#quietOf(names)
    // A state that never becomes due has no holds in the file.
    return this.#holds.read(names, id, { open: !isFirst && open < Infinity, closed: closed < Infinity })
  }

  #saveHold (names: GroupNames, hold: HoldRecord, before: HoldRecord | undefined): void {
    this.#holds.change(names, hold.id, hold, before)
    const quiet = this.#quietOf(names)
    if (hold.deadline >= quiet[hold.state]) return
    quiet[hold.state] = hold.deadline
    this.#quiet.set(names.own, quiet)
  }

  /**
   * A far deadline of an open hold was set while the clock was ahead. It is moved to that of a hold made now, and does not expire at once:
   * its request may still run.
   */
  #due (names: GroupNames, now: number, max: number): readonly HoldRecord[] {
    const quiet = this.#quietOf(names)
    const latest = now + Math.max(this.#holdTtlMs, aheadMs)
    if (quiet.open > latest && quiet.open < Infinity) quiet.open = now
    if (now < quiet.open && now < quiet.closed) return none
    this.#holds.flush()
    const due: HoldRecord[] = []
    const far: HoldRecord[] = []
    for (const state of states) {
      if (now < quiet[state]) continue
      quiet[state] = Infinity
      for (const hold of this.#holds.of(names, state)) {
        if (state === 'open' && hold.deadline > latest) far.push(hold)
        else if (hold.deadline > now || due.length === max) quiet[state] = Math.min(quiet[state], hold.deadline)
        else due.push(this.#holds.known(names, hold.id) ?? hold)
      }
    }
    this.#quiet.set(names.own, quiet)
    for (const hold of far) this.#saveHold(names, { ...hold, deadline: now + this.#holdTtlMs }, hold)
    return due
  }

  /** Whether others are left. */
  #dropBuckets (prefix: string, before: number): boolean {
    this.#buckets.flush()
    let areLeft = false
    for (const { key: name, value } of [...this.#tables.buckets.getRange({ start: prefix, end: `${prefix}\uffff` })]) {
      if (Number(readBucketRecord(value).endsAt ?? Infinity) >= before) areLeft = true
      else {
        this.#buckets.drop(name)
        this.#spent.add(name)
      }
    }
    return areLeft
  }
}

function readQuiet (value: Buffer): Quiet {
  const [open = Infinity, closed = Infinity] = readNumbers(value, 0, 2)
  return { open, closed }
}
