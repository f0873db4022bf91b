import { hold, leave, read, renew, settle, sweep, type Book, type HoldRecord, type Shelf } from './book.js'
import type { AccountRecord } from './parties.js'
import type { Balances } from './types.js'

export interface MemoryBalancesOptions {
  readonly now?: () => number
  /** Default 60 s. */
  readonly holdTtlMs?: number
}

/** Balances of this process alone: lost at exit, answered without a promise. */
export function memoryBalances ({ now = Date.now, holdTtlMs = 60_000 }: MemoryBalancesOptions = {}): Balances {
  const book: Book = { shelf: memoryShelf(), now, holdTtlMs }
  return {
    holdTtlMs,
    hold: (ask) => hold(book, ask),
    leave: (id) => leave(book, id),
    settle: (settlement) => settle(book, settlement),
    renew: (_, ids) => renew(book, ids),
    sweep: (group) => sweep(book, group),
    read: (group, key) => read(book, group, key),
    close: async () => {},
  }
}

interface Queues {
  readonly open: Map<string, HoldRecord>
  readonly closed: Map<string, HoldRecord>
}

/** Every hold of one state lives equally long, so that a map in order of last save is in order of deadline. */
function memoryShelf (): Shelf {
  const accounts = new Map<string, AccountRecord>()
  const holds = new Map<string, HoldRecord>()
  const groups = new Map<string, Queues>()
  const drop = (id: string): void => {
    const found = holds.get(id)
    if (found === undefined) return
    holds.delete(id)
    groups.get(found.group)?.[found.state].delete(id)
  }
  return {
    account: (name) => accounts.get(name),
    saveAccount: (name, account) => accounts.set(name, account),
    hold: (id) => holds.get(id),
    saveHold: (hold) => {
      drop(hold.id)
      holds.set(hold.id, hold)
      queuesOf(groups, hold.group)[hold.state].set(hold.id, hold)
    },
    dropHold: ({ id }) => drop(id),
    due: (group, now, max) => {
      const { open, closed } = queuesOf(groups, group)
      return [...dueOf(open, now, max), ...dueOf(closed, now, max)]
    },
  }
}

function queuesOf (groups: Map<string, Queues>, group: string): Queues {
  const known = groups.get(group)
  if (known !== undefined) return known
  const queues = { open: new Map<string, HoldRecord>(), closed: new Map<string, HoldRecord>() }
  groups.set(group, queues)
  return queues
}

function dueOf (queue: Map<string, HoldRecord>, now: number, max: number): HoldRecord[] {
  const due: HoldRecord[] = []
  for (const hold of queue.values()) {
    if (hold.deadline > now || due.length === max) break
    due.push(hold)
  }
  return due
}
