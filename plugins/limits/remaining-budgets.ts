import { amountIn } from '../core/balances/buckets.js'
import type { Amounts, Bucket, Left, Parties, LimitRefusal } from '../core/balances/types.js'
import type { GaugeSample } from '../core/recorder.js'
import { readBucketId } from './budgets.js'
import type { KnownBudget, LastKnown } from './last-known.js'

const none: readonly never[] = []

/** What was left of each budget of a group when the store last answered: for the gauge, and for leases while it is away. */
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

  giveBack ({ group, groupBuckets = none }: Parties, amounts: Amounts): void {
    for (const bucket of groupBuckets) {
      const known = find(this.#lastKnown.budgets, group, bucket)
      if (known?.bucket.id === bucket.id) known.left += amountIn(amounts, bucket.unit)
    }
  }

  /** The whole amount if nothing is known. */
  left (group: string, bucket: Bucket): number {
    const known = find(this.#lastKnown.budgets, group, bucket)
    return known?.bucket.id === bucket.id ? known.left : bucket.amount
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
    const known = find(this.#groups, group, bucket) ?? this.#track(group, bucket)
    known.bucket = bucket
    known.left = left
  }

  #track (group: string, bucket: Bucket): KnownBudget {
    const { budgets } = this.#lastKnown
    const found = find(budgets, group, bucket)
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

/** Nearly always by the same bucket object, without a look at its id. */
function find (groups: ReadonlyMap<string, readonly KnownBudget[]>, group: string, bucket: Bucket): KnownBudget | undefined {
  const budgets = groups.get(group) ?? none
  for (const known of budgets) if (known.bucket === bucket) return known
  return inAnotherPeriod(budgets, bucket)
}

/** Not inside of `find`, which would then allocate for this closure each time. */
function inAnotherPeriod (budgets: readonly KnownBudget[], bucket: Bucket): KnownBudget | undefined {
  return budgets.find((known) => budgetOf(known.bucket.id) === budgetOf(bucket.id))
}

/** A bucket's id without its period's beginning. */
function budgetOf (id: string): string {
  return id.slice(0, id.lastIndexOf(' '))
}
