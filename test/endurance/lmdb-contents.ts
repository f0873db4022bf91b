/** What stands in the files of the lmdb engine, read beside it. */
import { readAccount, readHold } from '../../plugins/state/lmdb/codec.js'
import type { LmdbFiles } from '../../plugins/state/lmdb/open.js'
import type { AccountRecord, HoldRecord } from '../../plugins/core/balances/group-store.js'

export function holdsIn ({ tables }: LmdbFiles, group: string): Map<string, HoldRecord> {
  const holds = new Map<string, HoldRecord>()
  for (const { key: name, value } of tables.holds.getRange()) {
    const [, state, id = ''] = /^(\w+) \d+:[^:]*:(.*)$/.exec(name) ?? []
    holds.set(id, readHold(value, group, id, state === 'open' ? 'open' : 'closed'))
  }
  return holds
}

export function accountIn ({ tables }: LmdbFiles, name: string): AccountRecord | undefined {
  const stored = tables.accounts.get(name)
  return stored === undefined ? undefined : readAccount(stored)
}

/** No open hold of the group is due before the first, no closed one before the second. */
export function quietIn ({ tables }: LmdbFiles, group: string): readonly [open: number, closed: number] {
  const stored = tables.groups.get(`g:${group}`)
  return stored === undefined ? [Infinity, Infinity] : [stored.readDoubleLE(0), stored.readDoubleLE(8)]
}
