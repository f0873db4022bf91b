import { hold, leave, read, renew, settle, sweep, type Book, type HoldRecord, type Shelf } from './book.js'
import type { LmdbFiles } from './lmdb-open.js'
import { accountName } from './parties.js'
import type { Balances } from './types.js'

export interface LmdbBalancesOptions {
  readonly now?: (() => number) | undefined
  readonly holdTtlMs: number
}

/** How old `spent` may be. Each time, the event loop waits for the disk once. */
const checkpointMs = 5_000

/**
 * Balances that every process of one host shares. What is asked in one turn of the event loop is decided in one
 * transaction, under the file's one write lock, synchronously. The package's asynchronous transactions take the lock in a
 * thread of their own and then wait for a turn of this one: where this one asks for the same lock meanwhile, through a
 * second opening of the file, neither goes on any more. Seen with lmdb 3.5.6 and `overlappingSync: false` on Node 20.20 and
 * 22.23: `transaction()` here and `transactionSync()` there stand still for ever, each alone resolves. They are also half as
 * fast (1.2 million writes a second in 64 loops, where synchronous ones make 2.3).
 */
export function lmdbBalances (files: LmdbFiles, { now = Date.now, holdTtlMs }: LmdbBalancesOptions): Balances {
  const dirty = new Map<string, number>()
  const book: Book = { shelfOf: lmdbShelves(files, dirty), now, holdTtlMs }
  const step = inTurns((work) => files.balances.transactionSync(work))
  const checkpoint = (): void => {
    if (dirty.size === 0) return
    try {
      // Not asynchronously: the package ends the process where such a write fails.
      files.durable.transactionSync(() => {
        // Another process may have written a newer one.
        for (const [name, spent] of dirty) files.spent.putSync(name, Math.max(spent, files.spent.get(name) ?? 0))
      })
      dirty.clear()
    } catch {
      // The disk took nothing. All that is dirty still is, and is written next time.
    }
  }
  const timer = setInterval(checkpoint, checkpointMs).unref()
  return {
    holdTtlMs,
    hold: async (ask) => await step(() => hold(book, ask)),
    leave: async (id, group) => await step(() => leave(book, group, id)),
    settle: async (settlement) => await step(() => settle(book, settlement)),
    renew: async (group, ids) => await step(() => renew(book, group, ids)),
    sweep: async (group) => await step(() => sweep(book, group)),
    read: async (group, key) => await step(() => read(book, group, key)),
    close: async () => {
      clearInterval(timer)
      await step(checkpoint)
    },
  }
}

/** Runs all steps of one turn inside one transaction. One that throws fails alone; a transaction that fails, fails them all. */
function inTurns (transaction: (work: () => void) => void): <T>(step: () => T) => Promise<T> {
  type Waiting = { readonly run: () => () => void, readonly reject: (error: unknown) => void }
  let waiting: Waiting[] = []
  const drain = (): void => {
    const turn = waiting
    waiting = []
    let answers: Array<() => void> = []
    try {
      transaction(() => { answers = turn.map(({ run }) => run()) })
    } catch (error) {
      answers = turn.map(({ reject }) => () => reject(error))
    }
    for (const answer of answers) answer()
  }
  return async <T>(step: () => T) => await new Promise<T>((resolve, reject) => {
    if (waiting.length === 0) setImmediate(drain)
    const run = (): (() => void) => {
      try {
        const value = step()
        return () => resolve(value)
      } catch (error) {
        return () => reject(error)
      }
    }
    waiting.push({ run, reject })
  })
}

function lmdbShelves ({ accounts, holds, deadlines }: LmdbFiles, dirty: Map<string, number>): (group: string) => Shelf {
  const indexOf = (hold: HoldRecord): Array<string | number> => [hold.group, hold.state, hold.deadline, hold.id]
  const drop = (id: string): void => {
    const found = holds.get(id)
    if (found === undefined) return
    holds.removeSync(id)
    deadlines.removeSync(indexOf(found))
  }
  const dueOf = (group: string, state: HoldRecord['state'], now: number, limit: number): HoldRecord[] => {
    const range = { start: [group, state, 0], end: [group, state, now + 1], limit }
    return [...deadlines.getKeys(range)].map((index) => holds.get(String(index[3]))).filter((hold) => hold !== undefined)
  }
  return (group) => ({
    account: (key) => accounts.get(accountName(group, key)),
    saveAccount: (key, account) => {
      const name = accountName(group, key)
      accounts.putSync(name, account)
      dirty.set(name, account.spent)
    },
    hold: (id) => holds.get(id),
    saveHold: (hold) => {
      drop(hold.id)
      holds.putSync(hold.id, hold)
      deadlines.putSync(indexOf(hold), true)
    },
    dropHold: ({ id }) => drop(id),
    due: (now, max) => [...dueOf(group, 'open', now, max), ...dueOf(group, 'closed', now, max)],
  })
}
