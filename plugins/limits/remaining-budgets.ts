import type { Bucket, Left, Parties, LimitRefusal } from '../core/balances/types.js'
import type { GaugeSample } from '../core/recorder.js'
import { readBucketId } from './budgets.js'
import { findBudget, type KnownBudget, type LastKnown } from './last-known.js'

const none: readonly never[] = []

/** What was left of each budget of a group when the store last answered: noted for all apps, and shown by the gauge of one. */
export class RemainingBudgets {
  readonly #lastKnown: LastKnown
  /** Those that this app has asked for: its gauge shows no others. */
  readonly #groups = new Map<string, KnownBudget[]>()

  constructor (lastKnown: LastKnown) {
    this.#lastKnown = lastKnown
  }

  /** `left`: of the key's buckets, then of the group's. */
  note ({ group, groupBuckets = none, keyBuckets = none }: Parties, { buckets: left = none }: Left): void {
    let at = keyBuckets.length
    for (const bucket of groupBuckets) this.set(group, bucket, left[at++] ?? bucket.amount)
  }

  noteRefused ({ group, groupBuckets = none }: Parties, { scope, bucket: id, free }: LimitRefusal): void {
    const bucket = scope === 'group' ? groupBuckets.find((each) => each.id === id) : undefined
    if (bucket !== undefined) this.set(group, bucket, free)
  }

  tells (group: string): boolean {
    return this.#groups.has(group)
  }

  samples (): GaugeSample[] {
    const now = Date.now()
    return [...this.#groups].flatMap(([group, budgets]) => {
      const least = new Map<string, number>()
      for (const { bucket, left } of budgets) {
        const { period } = readBucketId(bucket.id)
        const isOver = bucket.endsAt !== null && now >= bucket.endsAt
        const ratio = isOver ? 1 : Math.max(0, left) / bucket.amount
        least.set(period, Math.min(ratio, least.get(period) ?? 1))
      }
      return [...least].map(([period, value]) => ({ labels: { group, period }, value }))
    })
  }

  set (group: string, bucket: Bucket, left: number): void {
    const known = findBudget(this.#groups, group, bucket) ?? this.#track(group, bucket)
    known.bucket = bucket
    known.left = left
  }

  #track (group: string, bucket: Bucket): KnownBudget {
    const { budgets } = this.#lastKnown
    const found = findBudget(budgets, group, bucket)
    const known = found ?? { bucket, left: 0 }
    if (found === undefined) add(budgets, group, known)
    add(this.#groups, group, known)
    return known
  }
}

function add (groups: Map<string, KnownBudget[]>, group: string, known: KnownBudget): void {
  const budgets = groups.get(group)
  if (budgets === undefined) groups.set(group, [known])
  else budgets.push(known)
}
