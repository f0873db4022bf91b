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
    leave: (id, group) => leave(book, group, id),
    settle: (settlement) => settle(book, settlement),
    renew: (group, ids) => renew(book, group, ids),
    sweep: (group) => sweep(book, group),
    read: (group, key) => read(book, group, key),
    close: async () => {},
  }
}

/** What one group has. Every hold of one state lives equally long, so that a map in order of last save is in order of deadline. */
class GroupShelf {
  account: AccountRecord | undefined
  readonly keys = new Map<string, AccountRecord>()
  readonly open = new Map<string, HoldRecord>()
  readonly closed = new Map<string, HoldRecord>()
  /** No hold is due before. */
  quietUntil = Infinity

  due (now: number, max: number): readonly HoldRecord[] {
    if (now < this.quietUntil) return none
    const due: HoldRecord[] = []
    this.quietUntil = Math.min(take(this.open, now, max, due), take(this.closed, now, max, due))
    return due
  }
}

const none: readonly HoldRecord[] = []

/** Adds what is due, at most `max`; returns when the next one is. */
function take (queue: Map<string, HoldRecord>, now: number, max: number, due: HoldRecord[]): number {
  let taken = 0
  for (const hold of queue.values()) {
    if (hold.deadline > now || taken === max) return hold.deadline
    due.push(hold)
    taken += 1
  }
  return Infinity
}

function memoryShelf (): Shelf {
  const groups = new Map<string, GroupShelf>()
  const shelfOf = (group: string): GroupShelf => {
    const known = groups.get(group)
    if (known !== undefined) return known
    const made = new GroupShelf()
    groups.set(group, made)
    return made
  }
  return {
    account: (group, key) => key === null ? shelfOf(group).account : shelfOf(group).keys.get(key),
    saveAccount: (group, key, account) => {
      if (key === null) shelfOf(group).account = account
      else shelfOf(group).keys.set(key, account)
    },
    hold: (group, id) => shelfOf(group).open.get(id) ?? shelfOf(group).closed.get(id),
    saveHold: (hold) => {
      const shelf = shelfOf(hold.group)
      const queue = shelf[hold.state]
      if (queue.get(hold.id) === hold) return
      shelf.open.delete(hold.id)
      shelf.closed.delete(hold.id)
      queue.set(hold.id, hold)
      shelf.quietUntil = Math.min(shelf.quietUntil, hold.deadline)
    },
    dropHold: ({ group, state, id }) => shelfOf(group)[state].delete(id),
    due: (group, now, max) => shelfOf(group).due(now, max),
  }
}
