import type { GaugeSample } from '../core/recorder.js'
import type { Left, Parties, LimitRefusal } from '../core/balances/types.js'
import type { KnownBalance, LastKnown } from './last-known.js'
import { RemainingBudgets } from './remaining-budgets.js'

/** What was left of each balance when the store last answered: noted for all apps, and shown by the gauge of one. */
export class Remaining {
  readonly budgets: RemainingBudgets
  readonly #lastKnown: LastKnown
  /** Those that this app has asked for: its gauge shows no others. */
  readonly #groups = new Map<string, KnownBalance>()

  constructor (lastKnown: LastKnown) {
    this.#lastKnown = lastKnown
    this.budgets = new RemainingBudgets(lastKnown)
  }

  note (parties: Parties, left: Left): void {
    const { group, groupLimits, key, keyLimits } = parties
    if (left.buckets !== undefined) this.budgets.note(parties, left)
    if (groupLimits.balance !== undefined && left.group !== null) this.noteGroup(group, groupLimits.balance, left.group)
    if (keyLimits.balance !== undefined && left.key !== null) this.#lastKnown.noteKey(group, key, left.key)
  }

  /** A refusal says it too: once a balance is spent, a process that was started since gets nothing else. */
  noteRefused (parties: Parties, refused: LimitRefusal): void {
    const { limit, scope, allowed, free } = refused
    const { group, key } = parties
    if (limit === 'budget') this.budgets.noteRefused(parties, refused)
    if (limit !== 'balance') return
    if (scope === 'group') this.noteGroup(group, allowed, free)
    else this.#lastKnown.noteKey(group, key, free)
  }

  noteGroup (group: string, granted: number, left: number): void {
    const known = this.#groups.get(group) ?? this.#track(group)
    known.granted = granted
    known.left = left
  }

  #track (group: string): KnownBalance {
    const { groups } = this.#lastKnown
    const known = groups.get(group) ?? { granted: 0, left: 0 }
    groups.set(group, known)
    this.#groups.set(group, known)
    return known
  }

  tells (group: string): boolean {
    return this.#groups.has(group) || this.budgets.tells(group)
  }

  samples (): GaugeSample[] {
    return [...this.#groups].map(([group, { granted, left }]) => {
      return { labels: { group }, value: granted === 0 ? 0 : Math.max(0, left) / granted }
    })
  }
}
