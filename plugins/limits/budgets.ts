/** Budgets as the state counts them: one bucket for each in the period that is now. */
import { amountOf, periods, type BudgetAmount, type Period } from '../core/budget.js'
import type { Bucket } from '../core/balances/types.js'
import type { Budget, Limits } from '../core/types.js'
import { spanOf, type Span } from './calendar.js'

interface Counted {
  readonly budget: Budget
  readonly counted: BudgetAmount
  span: Span
  bucket: Bucket
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
const known = new WeakMap<readonly Budget[], Counted[]>()

/** Undefined where there are none. The same buckets until a period turns. */
export function bucketsOf ({ budgets }: Limits, now: number): readonly Bucket[] | undefined {
  if (budgets === undefined || budgets.length === 0) return undefined
  let counted = known.get(budgets)
  if (counted === undefined) {
    counted = budgets.map((budget) => count(budget, now))
    known.set(budgets, counted)
  }
  return counted.map((each) => {
    const { budget, span: { from, endsAt } } = each
    // A clock may be set back, too.
    if (now < from || (endsAt !== null && now >= endsAt)) Object.assign(each, count(budget, now))
    return each.bucket
  })
}

function count (budget: Budget, now: number): Counted {
  const { period, timezone = 'UTC' } = budget
  const counted = amountOf(budget)
  const span = spanOf(period, timezone, now)
  return { budget, counted, span, bucket: { id: `${counted.unit} ${period} ${timezone} ${span.name}`, ...counted, endsAt: span.endsAt } }
}

export function readBucketId (id: string): BucketWords {
  const [unit, period = 'total', timezone = 'UTC', start = ''] = id.split(' ')
  return { unit: unit === 'cost' ? 'cost' : 'tokens', period: periods.find((known) => known === period) ?? 'total', timezone, start }
}
