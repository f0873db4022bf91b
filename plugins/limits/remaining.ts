import { LRUCache } from 'lru-cache'
import type { GaugeSample } from '../core/recorder.js'
import type { Amounts, Left, Parties, LimitRefusal } from '../core/balances/types.js'
import { RemainingBudgets } from './remaining-budgets.js'

/** More keys with a balance of their own than this are not remembered at once. */
const maxKeys = 10_000

interface Balance {
  granted: number
  left: number
}

/** What was left of each balance when the store last answered: for the gauge, and for leases while it does not. */
export class Remaining {
  readonly budgets = new RemainingBudgets()
  readonly #groups = new Map<string, Balance>()
  /** Made with the first: it has room for all of them from the start. */
  #keys: LRUCache<string, number> | null = null

  note (parties: Parties, left: Left): void {
    const { group, groupLimits, key, keyLimits } = parties
    if (left.buckets !== undefined) this.budgets.note(parties, left)
    if (groupLimits.balance !== undefined && left.group !== null) this.noteGroup(group, groupLimits.balance, left.group)
    if (keyLimits.balance !== undefined && left.key !== null) this.#noteKey(key, left.key)
  }

  /** A refusal tells it too: once a balance is spent, a process that was started since hears nothing else. */
  noteRefused (parties: Parties, refused: LimitRefusal): void {
    const { limit, scope, allowed, free } = refused
    const { group, key } = parties
    if (limit === 'budget') this.budgets.noteRefused(parties, refused)
    if (limit !== 'balance') return
    if (scope === 'group') this.noteGroup(group, allowed, free)
    else this.#noteKey(key, free)
  }

  noteGroup (group: string, granted: number, left: number): void {
    const known = this.#groups.get(group)
    if (known === undefined) this.#groups.set(group, { granted, left })
    else {
      known.granted = granted
      known.left = left
    }
  }

  #noteKey (key: string, left: number): void {
    this.#keys ??= new LRUCache({ max: maxKeys })
    this.#keys.set(key, left)
  }

  /** A hold ended and gave back what it did not use. */
  giveBack (parties: Parties, amounts: Amounts): void {
    const { group, key } = parties
    const { tokens } = amounts
    if (parties.groupBuckets !== undefined) this.budgets.giveBack(parties, amounts)
    const balance = this.#groups.get(group)
    if (balance !== undefined) balance.left += tokens
    const left = this.#keys?.get(key)
    if (left !== undefined) this.#noteKey(key, left + tokens)
  }

  tells (group: string): boolean {
    return this.#groups.has(group) || this.budgets.tells(group)
  }

  left ({ group, key }: Parties): Left {
    return { group: this.#groups.get(group)?.left ?? null, key: this.#keys?.get(key) ?? null }
  }

  samples (): GaugeSample[] {
    return [...this.#groups].map(([group, { granted, left }]) => {
      return { labels: { group }, value: granted === 0 ? 0 : Math.max(0, left) / granted }
    })
  }
}
