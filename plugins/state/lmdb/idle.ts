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

/** Looks at some accounts of a group each time, and removes idle ones. `prefix`: what the names of its keys' accounts begin with. */
export function idleDropper (table: Binary, prefix: string, { account, dropAccount, dropBuckets }: Records): (nowMs: number) => void {
  /** Where the next check begins. */
  let next = prefix
  return (nowMs) => {
    const names = [...table.getKeys({ start: next, end: `${prefix}\u{10ffff}`, limit: idleLooks + 1 })]
    next = names[idleLooks] ?? prefix
    for (const name of names.slice(0, idleLooks)) {
      const found = account(name)
      if (found === undefined || !isIdle(found, nowMs)) continue
      if (!dropBuckets(name.slice(prefix.length), nowMs - bucketKeepMs)) dropAccount(name)
    }
  }
}
