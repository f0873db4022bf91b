import { leave, renew, settle } from './endings.js'
import type { Engine, GroupStore } from './group-store.js'
import { MemoryGroupStore } from './memory-group-store.js'
import { hold, read, readBucket } from './rules.js'
import type { Balances } from './types.js'

interface MemoryBalancesOptions {
  /** A clock for tests. @defaultValue that of the system */
  readonly now?: () => number
  /** How long a hold lives without being renewed, in milliseconds. @defaultValue 60,000 */
  readonly holdTtlMs?: number
}

/** Balances in this process's memory: lost at exit, answered without a promise. */
export function memoryBalances ({ now = Date.now, holdTtlMs = 60_000 }: MemoryBalancesOptions = {}): Balances {
  const engine: Engine = { storeOf: memoryGroupStores(), now, holdTtlMs }
  return {
    holdTtlMs,
    hold: (ask) => hold(engine, ask),
    leave: (id, group) => leave(engine, group, id),
    settle: (settlement) => settle(engine, settlement),
    renew: (group, ids) => renew(engine, group, ids),
    read: (group, key) => read(engine, group, key),
    readBucket: (id, group, key) => readBucket(engine, id, group, key),
    close: async () => {},
  }
}

function memoryGroupStores (): (group: string) => GroupStore {
  const groups = new Map<string, GroupStore>()
  return (group) => {
    const known = groups.get(group)
    if (known !== undefined) return known
    const made = new MemoryGroupStore()
    groups.set(group, made)
    return made
  }
}
