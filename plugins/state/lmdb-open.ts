import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Database, RootDatabase } from 'lmdb'
import type { HoldRecord } from './book.js'
import type { AccountRecord } from './parties.js'
import { loadPeer } from './peer.js'
import type { KeyChange, KeyRecord } from './types.js'

/** The files of one host. `durable` is on the disk when a write resolves; `balances` are as safe as the running system. */
export interface LmdbFiles {
  readonly durable: RootDatabase
  readonly keysByDigest: Database<KeyRecord, string>
  readonly digestsById: Database<string, string>
  readonly changes: Database<KeyChange, number>
  /** Tokens spent by each account, some seconds old: what is left of the balances after a power failure. */
  readonly spent: Database<number, string>

  readonly balances: RootDatabase
  readonly accounts: Database<AccountRecord, string>
  readonly holds: Database<HoldRecord, string>
  /** [group, state, deadline, id], in this order. */
  readonly deadlines: Database<true, Array<string | number>>
}

/**
 * Opens both files, made where there are none. A write to `balances` does not wait for the disk: the system keeps it when
 * the process is killed, and after a restart of the system (another boot id) the file is made anew from `spent`. Where
 * there is no boot id, every write waits for the disk.
 * `overlappingSync: false` throughout: with it on, kills lost writes (facts/reliability.md 4.3).
 */
export async function openLmdb (path: string, bootId: string | null = readBootId()): Promise<LmdbFiles> {
  const { open } = await loadPeer('state.engine lmdb', 'lmdb', async () => await import('lmdb'))
  mkdirSync(path, { recursive: true })
  const balancesPath = join(path, 'balances.mdb')
  const durable = open({ path: join(path, 'keys.mdb'), overlappingSync: false, maxDbs: 8 })
  const spent = durable.openDB<number, string>({ name: 'spent' })
  const openBalances = (): RootDatabase => open({ path: balancesPath, overlappingSync: false, maxDbs: 4, noSync: bootId !== null })
  const accountsIn = (balances: RootDatabase): LmdbFiles['accounts'] => balances.openDB({ name: 'accounts' })

  const balances = durable.transactionSync(() => {
    if (bootId === null || durable.get('boot') === bootId) return openBalances()
    for (const file of [balancesPath, `${balancesPath}-lock`]) rmSync(file, { force: true })
    const fresh = openBalances()
    const accounts = accountsIn(fresh)
    for (const { key, value } of spent.getRange()) {
      accounts.putSync(key, { spent: value, held: 0, active: 0, window: { entries: [], requests: 0, tokens: 0 } })
    }
    durable.put('boot', bootId)
    return fresh
  })
  return {
    durable,
    keysByDigest: durable.openDB({ name: 'keys' }),
    digestsById: durable.openDB({ name: 'ids' }),
    changes: durable.openDB({ name: 'changes' }),
    spent,
    balances,
    accounts: accountsIn(balances),
    holds: balances.openDB({ name: 'holds' }),
    deadlines: balances.openDB({ name: 'deadlines' }),
  }
}

/** Changes with every start of the system; null where the system does not tell. */
export function readBootId (file = '/proc/sys/kernel/random/boot_id'): string | null {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch {
    return null
  }
}
