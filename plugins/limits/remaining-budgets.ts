import type { Amounts, Bucket, Left, Parties, LimitRefusal } from '../core/balances/types.js'
import type { GaugeSample } from '../core/recorder.js'
import { readBucketId } from './budgets.js'

interface Known {
  bucket: Bucket
  left: number
}

const none: readonly never[] = []

/** What was left of each budget of a group when the store last answered: for the gauge, and for leases while it does not. */
export class RemainingBudgets {
  /** By group, then by budget: of each the newest period. */
  readonly #groups = new Map<string, Map<string, Known>>()

  /** `left`: of the key's buckets, then of the group's. */
  note ({ group, groupBuckets = none, keyBuckets = none }: Parties, { buckets: left = none }: Left): void {
    groupBuckets.forEach((bucket, at) => this.#set(group, bucket, left[keyBuckets.length + at] ?? bucket.amount))
  }

  noteRefused ({ group, groupBuckets = none }: Parties, { scope, bucket: id, free }: LimitRefusal): void {
    const bucket = scope === 'group' ? groupBuckets.find((each) => each.id === id) : undefined
    if (bucket !== undefined) this.#set(group, bucket, free)
  }

  giveBack ({ group, groupBuckets = none }: Parties, amounts: Amounts): void {
    for (const { id, unit } of groupBuckets) {
      const known = this.#groups.get(group)?.get(budgetOf(id))
      if (known?.bucket.id === id) known.left += amounts[unit]
    }
  }

  /** All of it where nothing is known. */
  left (group: string, bucket: Bucket): number {
    const known = this.#groups.get(group)?.get(budgetOf(bucket.id))
    return known?.bucket.id === bucket.id ? known.left : bucket.amount
  }

  samples (now = Date.now()): GaugeSample[] {
    return [...this.#groups].flatMap(([group, budgets]) => {
      const least = new Map<string, number>()
      for (const { bucket, left } of budgets.values()) {
        const { period } = readBucketId(bucket.id)
        const isOver = bucket.endsAt !== null && now >= bucket.endsAt
        const ratio = isOver ? 1 : Math.max(0, left) / bucket.amount
        least.set(period, Math.min(ratio, least.get(period) ?? 1))
      }
      return [...least].map(([period, value]) => ({ labels: { group, period }, value }))
    })
  }

  #set (group: string, bucket: Bucket, left: number): void {
    const name = budgetOf(bucket.id)
    const budgets = this.#groups.get(group)
    const known = budgets?.get(name)
    if (budgets === undefined) this.#groups.set(group, new Map([[name, { bucket, left }]]))
    else if (known === undefined) budgets.set(name, { bucket, left })
    else {
      known.bucket = bucket
      known.left = left
    }
  }
}

/** A bucket's id without its period's beginning. */
function budgetOf (id: string): string {
  return id.slice(0, id.lastIndexOf(' '))
}
