/** Mutual exclusion of processes, because opening an lmdb file while others write it damages it. */
import { headerOf } from './header.js'
import { loadLmdb } from '../peer.js'

interface LmdbLock {
  /** Runs `step` while no other process and no other thread runs theirs. The system releases the lock if the process is killed. */
  readonly alone: <T>(step: () => T) => T
  readonly close: () => Promise<void>
}

/**
 * The lock for the file `path`, held while opening it and for every write. Opening takes the state that it has read for the newest: what
 * another process commits in between is undone, and the next commit is written over pages in use. Seen with lmdb 3.5.6, one process
 * writing, another opening and closing: commits were gone within a second, and then the file could not be written any more. The lock is the
 * write lock of a second file, in which nothing is ever written, so that opening that one undoes nothing.
 */
export async function openLock (path: string): Promise<LmdbLock> {
  const { open } = await loadLmdb()
  const gate = `${path}.gate`
  // Not made anew here: another process may be making it at this moment, or hold the lock by it.
  if (headerOf(gate) === 'damaged') throw new Error(`${gate} is damaged: delete it while nothing uses the folder, it holds no data`)
  const file = open({ path: gate, overlappingSync: false })
  return { alone: (step) => file.transactionSync(step), close: async () => await file.close() }
}
