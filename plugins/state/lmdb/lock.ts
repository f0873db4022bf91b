/** One process at a time: for a file of lmdb that one opens while others write it. */
import { loadLmdb } from '../peer.js'

export interface LmdbLock {
  /** Runs `step` while no other process and no other thread is in theirs. The system frees it where a process is killed in it. */
  readonly alone: <T>(step: () => T) => T
  readonly close: () => Promise<void>
}

/**
 * The lock for the file `path`, to be had for opening it, and for every write. Opening takes the state that it read for the newest one:
 * what another process commits in between is undone, and what comes next is written over pages that are in use. Seen with lmdb 3.5.6, one
 * process that writes, another that opens and closes: commits were gone within a second, and then the file could not be written any more.
 * The lock is the write lock of a second file, in which nothing is ever written, so that opening that one undoes nothing.
 */
export async function openLock (path: string): Promise<LmdbLock> {
  const { open } = await loadLmdb()
  const file = open({ path: `${path}.gate`, overlappingSync: false })
  return { alone: (step) => file.transactionSync(step), close: async () => await file.close() }
}
