import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Database, RootDatabase } from 'lmdb'
import { bucketKeepMs } from '../../core/balances/buckets.js'
import { hasDiskRoom } from './disk-room.js'
import { bucketOf, writeAccount, writeBucket } from './codec.js'
import { openDurable, type DurableFile, type Write } from './durable-file.js'
import { DurableThread } from './durable.js'
import type { LmdbTables, Spent } from './group-stores.js'
import { headerOf } from './header.js'
import { openLock } from './lock.js'
import { makeFolder } from '../make-folder.js'
import { loadLmdb } from '../peer.js'
import { newWindow } from '../../core/balances/window.js'
import { endAll } from '../ledger/end-all.js'

/** Room for tens of thousands of holds and accounts. */
const roomBytes = 4 * 1024 * 1024
/** As much as fits into one page. */
const valueBytes = 4_000

/** The files of one host. `balances` survives the process, and not a restart of the system. */
export interface LmdbFiles extends DurableFile {
  readonly thread: DurableThread
  readonly balances: RootDatabase
  readonly writeBalances: Write
  readonly tables: LmdbTables
  readonly close: () => Promise<void>
}

/**
 * Opens both files, and makes those that are missing. A write to `balances` does not wait for the disk: the system keeps it if the process
 * is killed. After a restart of the system (another boot id), or if it is gone or damaged, that file is made anew from `spent`. Without a
 * boot id, every write waits for the disk. `overlappingSync: false` throughout: with it on, kills lose writes.
 */
export async function openLmdb (path: string, bootId: string | null = readBootId(), hasRoom = hasDiskRoom): Promise<LmdbFiles> {
  const { open } = await loadLmdb()
  const balancesPath = join(path, 'limits.mdb')
  const file = await openFolder(path, hasRoom)
  const { durable, transaction, spent } = file
  const lock = await openLock(balancesPath)
  const openBalances = (): Pick<LmdbFiles, 'balances' | 'tables'> => {
    const balances = open({ path: balancesPath, overlappingSync: false, maxDbs: 4, noSync: bootId !== null })
    return { balances, tables: tablesOf(balances) }
  }

  const { balances, tables } = transaction(() => lock.alone(() => {
    const isKept = bootId === null || durable.get('boot') === bootId
    if (isKept && headerOf(balancesPath) === 'right') {
      const kept = openBalances()
      // Whoever made it was killed before it had what is spent.
      if (isEmpty(kept.tables)) kept.balances.transactionSync(() => restore(kept.tables, spent))
      return kept
    }
    endAll(join(path, 'ledger'))
    for (const each of [balancesPath, `${balancesPath}-lock`]) rmSync(each, { force: true })
    const fresh = openBalances()
    fresh.balances.transactionSync(() => restore(fresh.tables, spent))
    if (hasRoom(path, 2 * roomBytes)) takeRoom(fresh)
    if (bootId !== null) durable.putSync('boot', bootId)
    return fresh
  }))
  const thread = new DurableThread(path)
  return {
    ...file,
    thread,
    balances,
    tables,
    writeBalances: (step) => lock.alone(() => balances.transactionSync(step)),
    close: async () => {
      await thread.close()
      await balances.close()
      await lock.close()
      await file.closeDurable()
    },
  }
}

/** Throws an error that names the folder, which the library's error does not. */
async function openFolder (path: string, hasRoom: typeof hasDiskRoom): Promise<DurableFile> {
  try {
    makeFolder(path)
    // Otherwise the package would end the process.
    if (!existsSync(join(path, 'keys.mdb')) && !hasRoom(path)) throw new Error('its disk is full')
    return await openDurable(path, hasRoom)
  } catch (error) {
    const { message } = Object(error)
    throw new Error(`the folder ${path} of the state cannot be used: ${String(message)}`, { cause: error })
  }
}

function tablesOf (balances: RootDatabase): LmdbTables {
  const table = (name: string): LmdbTables['accounts'] => balances.openDB({ name, encoding: 'binary' })
  return { accounts: table('accounts'), buckets: table('buckets'), holds: table('holds'), groups: table('groups') }
}

function isEmpty ({ accounts, buckets }: LmdbTables): boolean {
  return [accounts, buckets].every((table) => table.getKeysCount({ limit: 1 }) === 0)
}

/** Makes the file take pages from the disk and leaves them free in it: when the disk is full, limits go on with them. */
function takeRoom ({ balances, tables }: Pick<LmdbFiles, 'balances' | 'tables'>): void {
  const names = Array.from({ length: Math.ceil(roomBytes / valueBytes) }, (_, n) => `room ${n}`)
  balances.transactionSync(() => { for (const name of names) tables.holds.putSync(name, Buffer.alloc(valueBytes)) })
  balances.transactionSync(() => { for (const name of names) tables.holds.removeSync(name) })
}

/** Nothing is held: requests that held anything ended with the system. */
function restore ({ accounts, buckets }: LmdbTables, spent: Database<Spent, string>): void {
  for (const { key, value } of spent.getRange()) {
    if (typeof value === 'number') accounts.putSync(key, writeAccount({ spent: value, held: 0, active: 0, window: newWindow() }))
    if (!Array.isArray(value)) continue
    const [gone = 0, ...others] = value
    const bucket = bucketOf([gone, 0, ...others])
    if ((bucket.endsAt ?? Infinity) + bucketKeepMs >= Date.now()) buckets.putSync(key, writeBucket(bucket))
  }
}

/** Changes with every start of the system; null if the system has none. */
export function readBootId (file = '/proc/sys/kernel/random/boot_id'): string | null {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch {
    return null
  }
}
