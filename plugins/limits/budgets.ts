/** Budgets as the state counts them: one bucket for each in the period that is now. */
import { amountOf, periods, type Period } from '../core/budget.js'
import type { Bucket } from '../core/balances/types.js'
import type { Budget, Limits } from '../core/types.js'
import { spanOf, type Span } from './calendar.js'

interface Counted {
  readonly span: Span
  readonly bucket: Bucket
}

/** What the id of a bucket says. */
export interface BucketWords {
  readonly unit: 'tokens' | 'cost'
  readonly period: Period
  readonly timezone: string
  /** Of the period: the date of its first day there; the moment of an hour, in UTC; empty for `total`. */
  readonly start: string
}

/** By the list that a key or a group has: those of one configuration live and go with it. */
const known = new WeakMap<readonly Budget[], { readonly counted: readonly Counted[], readonly buckets: readonly Bucket[] }>()

/** Undefined where there are none. The same buckets until a period turns. */
export function bucketsOf ({ budgets }: Limits, now: number): readonly Bucket[] | undefined {
  if (budgets === undefined || budgets.length === 0) return undefined
  const found = known.get(budgets)
  if (found?.counted.every((each) => isNow(each, now)) === true) return found.buckets
  const counted = budgets.map((budget, at) => {
    const before = found?.counted[at]
    return before !== undefined && isNow(before, now) ? before : count(budget, now)
  })
  const buckets = counted.map(({ bucket }) => bucket)
  known.set(budgets, { counted, buckets })
  return buckets
}

/** A clock may be set back, too. */
function isNow ({ span: { from, endsAt } }: Counted, now: number): boolean {
  return now >= from && (endsAt === null || now < endsAt)
}

function count (budget: Budget, now: number): Counted {
  const { period, timezone = 'UTC' } = budget
  const counted = amountOf(budget)
  const span = spanOf(period, timezone, now)
  return { span, bucket: { id: `${counted.unit} ${period} ${timezone} ${span.name}`, ...counted, endsAt: span.endsAt } }
}

export function readBucketId (id: string): BucketWords {
  const [unit, period = 'total', timezone = 'UTC', start = ''] = id.split(' ')
  return { unit: unit === 'cost' ? 'cost' : 'tokens', period: periods.find((known) => known === period) ?? 'total', timezone, start }
}
