import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Database, RootDatabase } from 'lmdb'
import { bucketKeepMs } from '../core/balances/buckets.js'
import { writeAccount, writeBucket } from './lmdb-codec.js'
import type { LmdbTables, Spent } from './lmdb-group-stores.js'
import { makeFolder } from './make-folder.js'
import type { StoredNote } from './notes.js'
import { loadLmdb } from './peer.js'
import { newWindow } from '../core/balances/window.js'
import type { KeyChange, KeyRecord } from './types.js'

/** The files of one host. `durable` is on the disk when a write resolves; `balances` are as safe as the running system. */
export interface LmdbFiles {
  /** Of the folder that they are in. */
  readonly path: string
  readonly durable: RootDatabase
  readonly keysByDigest: Database<KeyRecord, string>
  readonly digestsById: Database<string, string>
  readonly changes: Database<KeyChange, number>
  readonly notes: Database<StoredNote, string>
  /** What each account and each bucket has spent, some seconds old: what is left of them after a power failure. */
  readonly spent: Database<Spent, string>

  readonly balances: RootDatabase
  readonly tables: LmdbTables
}

/**
 * Opens both files, made where there are none. A write to `balances` does not wait for the disk: the system keeps it when
 * the process is killed, and after a restart of the system (another boot id) the file is made anew from `spent`. Where
 * there is no boot id, every write waits for the disk.
 * `overlappingSync: false` throughout: with it on, kills lost writes.
 */
export async function openLmdb (path: string, bootId: string | null = readBootId()): Promise<LmdbFiles> {
  const { open } = await loadLmdb()
  const balancesPath = join(path, 'limits.mdb')
  const { durable, spent } = await openFolder(path)
  const openBalances = (): RootDatabase => open({ path: balancesPath, overlappingSync: false, maxDbs: 4, noSync: bootId !== null })

  const balances = durable.transactionSync(() => {
    const isKept = bootId === null || durable.get('boot') === bootId
    if (isKept && existsSync(balancesPath)) return openBalances()
    for (const file of [balancesPath, `${balancesPath}-lock`]) rmSync(file, { force: true })
    const fresh = openBalances()
    fresh.transactionSync(() => restore(tablesOf(fresh), spent))
    if (bootId !== null) durable.put('boot', bootId)
    return fresh
  })
  return {
    path,
    durable,
    keysByDigest: durable.openDB({ name: 'keys' }),
    digestsById: durable.openDB({ name: 'ids' }),
    changes: durable.openDB({ name: 'changes' }),
    notes: durable.openDB({ name: 'notes' }),
    spent,
    balances,
    tables: tablesOf(balances),
  }
}

/** Throws an error that names the folder, which the library's own words do not. */
async function openFolder (path: string): Promise<Pick<LmdbFiles, 'durable' | 'spent'>> {
  try {
    makeFolder(path)
    return await openDurable(path)
  } catch (error) {
    const { message } = Object(error)
    throw new Error(`the folder ${path} of the state cannot be used: ${String(message)}`, { cause: error })
  }
}

/** What a thread beside this one may have open, too. */
export async function openDurable (path: string): Promise<Pick<LmdbFiles, 'durable' | 'spent'>> {
  const { open } = await loadLmdb()
  const durable = open({ path: join(path, 'keys.mdb'), overlappingSync: false, maxDbs: 8 })
  return { durable, spent: durable.openDB<Spent, string>({ name: 'spent' }) }
}

function tablesOf (balances: RootDatabase): LmdbTables {
  const table = (name: string): LmdbTables['accounts'] => balances.openDB({ name, encoding: 'binary' })
  return { accounts: table('accounts'), buckets: table('buckets'), holds: table('holds'), groups: table('groups') }
}

/** Nothing is held: whoever held it is gone with the system that ran. */
function restore ({ accounts, buckets }: LmdbTables, spent: Database<Spent, string>): void {
  for (const { key, value } of spent.getRange()) {
    if (typeof value === 'number') accounts.putSync(key, writeAccount({ spent: value, held: 0, active: 0, window: newWindow() }))
    const [gone = 0, amount = 0, toldPercent = 0, endsAt = Infinity] = Array.isArray(value) ? value : []
    if (!Array.isArray(value) || endsAt + bucketKeepMs < Date.now()) continue
    buckets.putSync(key, writeBucket({ spent: gone, held: 0, amount, toldPercent, endsAt: endsAt === Infinity ? null : endsAt }))
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
