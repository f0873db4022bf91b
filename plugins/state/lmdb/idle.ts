/** Accounts of keys that never come back: removed while others are made. */
import { bucketKeepMs } from '../../core/balances/buckets.js'
import { idleLooks, isIdle } from '../../core/balances/parties.js'
import type { AccountRecord } from '../../core/balances/group-store.js'
import type { Binary } from './known.js'

interface Records {
  readonly account: (name: string) => AccountRecord | undefined
  readonly dropAccount: (name: string) => void
  /** Removes a key's buckets whose period ended before; returns whether others are left. */
  readonly dropBuckets: (key: string, before: number) => boolean
}

/** Idle accounts of one group. */
export class LmdbIdle {
  readonly #table: Binary
  readonly #prefix: string
  readonly #records: Records
  /** Where the next check begins. */
  #next: string

  /** `prefix`: what the names of its keys' accounts begin with. */
  constructor (table: Binary, prefix: string, records: Records) {
    this.#table = table
    this.#prefix = prefix
    this.#records = records
    this.#next = prefix
  }

  drop (nowMs: number): void {
    const { account, dropAccount, dropBuckets } = this.#records
    const names = [...this.#table.getKeys({ start: this.#next, end: `${this.#prefix}\uffff`, limit: idleLooks + 1 })]
    this.#next = names[idleLooks] ?? this.#prefix
    for (const name of names.slice(0, idleLooks)) {
      const found = account(name)
      if (found === undefined || !isIdle(found, nowMs)) continue
      if (!dropBuckets(name.slice(this.#prefix.length), nowMs - bucketKeepMs)) dropAccount(name)
    }
  }
}
