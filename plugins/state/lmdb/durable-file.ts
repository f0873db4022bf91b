/** The file whose writes wait for the disk: keys, notes, and what is spent. */
import { join } from 'node:path'
import type { Database, RootDatabase } from 'lmdb'
import { hasDiskRoom } from './disk-room.js'
import type { Spent } from './group-stores.js'
import { headerOf } from './header.js'
import { openLock } from './lock.js'
import { loadLmdb } from '../peer.js'
import type { KeyChange, KeyRecord } from '../types.js'

/** A note as stored in the file. */
export interface StoredNote {
  readonly text: string
  /** Milliseconds since the epoch. */
  readonly until: number
}

/** Runs a step in one synchronous transaction of a file; an error undoes the step. The only way to write. */
export type Write = <T>(step: () => T) => T

/** Tables whose writes are on the disk when they resolve. */
export interface DurableFile {
  readonly durable: RootDatabase
  /** For writers that must not check the room on the disk. */
  readonly transaction: Write
  /** Throws if the disk is full. */
  readonly writeDurable: Write
  readonly keysByDigest: Database<KeyRecord, string>
  readonly digestsById: Database<string, string>
  readonly changes: Database<KeyChange, number>
  readonly notes: Database<StoredNote, string>
  /** What each account and each bucket has spent, some seconds old: the state of balances after a power failure. */
  readonly spent: Database<Spent, string>
  readonly closeDurable: () => Promise<void>
}

/**
 * Opens the file; a worker thread may have it open, too. A write throws if the disk is full. This is checked before, because with lmdb
 * 3.5.6 a write that fails may end the process: its message of up to 126 bytes is printed into 100.
 */
export async function openDurable (folder: string, hasRoom = hasDiskRoom): Promise<DurableFile> {
  const { open } = await loadLmdb()
  const path = join(folder, 'keys.mdb')
  const { alone, close } = await openLock(path)
  return alone(() => {
    if (headerOf(path) === 'damaged') throw new Error('its keys.mdb is damaged, or no file of lmdb: put that of a backup in its place')
    const durable = open({ path, overlappingSync: false, maxDbs: 8 })
    const transaction: Write = (step) => alone(() => durable.transactionSync(step))
    return {
      durable,
      transaction,
      writeDurable: (step) => {
        if (!hasRoom(folder)) throw new Error(`the disk of ${folder} is full`)
        return transaction(step)
      },
      keysByDigest: durable.openDB({ name: 'keys' }),
      digestsById: durable.openDB({ name: 'ids' }),
      changes: durable.openDB({ name: 'changes' }),
      notes: durable.openDB({ name: 'notes' }),
      spent: durable.openDB({ name: 'spent' }),
      closeDurable: async () => {
        await durable.close()
        await close()
      },
    }
  })
}
