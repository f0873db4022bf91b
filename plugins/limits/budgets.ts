/** Budgets as the state counts them: one bucket for each in its current period. */
import { amountOf, periods, zoneName, type Period } from '../core/money/budget.js'
import type { Bucket } from '../core/balances/types.js'
import type { Budget, Limits } from '../core/types.js'
import { spanOf, type Span } from './calendar.js'

interface Counted {
  readonly span: Span
  readonly bucket: Bucket
}

/** What is in the id of a bucket. */
export interface BucketWords {
  readonly unit: 'tokens' | 'cost'
  /** Null for tokens, and in ids of older versions, which did not name it. */
  readonly currency: string | null
  readonly period: Period
  readonly timezone: string
  /** Start of the period: the date of its first day in `timezone`; for an hour its time in UTC; empty for `total`. */
  readonly start: string
}

interface Known {
  readonly budgets: readonly Budget[]
  readonly currency: string
  readonly buckets: readonly Bucket[]
  /** The time during which all of these buckets are current, in milliseconds since the epoch. */
  readonly from: number
  readonly until: number
}

/** By the list of budgets that a key or a group has, so that entries are collected together with their configuration. */
const known = new WeakMap<readonly Budget[], Known>()
/** Most requests are of the same group as the one before, whose buckets are then found without a look into the map. */
let last: Known | undefined

/** The buckets of the periods at `now`; undefined for no budgets. The same objects until a period ends. `currency`: of the prices. */
export function currentBuckets ({ budgets }: Limits, currency: string, now: number): readonly Bucket[] | undefined {
  if (budgets === undefined || budgets.length === 0) return undefined
  if (last?.budgets !== budgets) last = known.get(budgets)
  // A clock may be set back, too.
  if (last?.currency === currency && now >= last.from && now < last.until) return last.buckets
  const counted = budgets.map((budget) => count(budget, currency, now))
  const buckets = counted.map(({ bucket }) => bucket)
  const from = Math.max(...counted.map(({ span }) => span.from))
  const until = Math.min(...counted.map(({ span }) => span.endsAt ?? Infinity))
  last = { budgets, currency, buckets, from, until }
  known.set(budgets, last)
  return buckets
}

function count (budget: Budget, currency: string, now: number): Counted {
  const { period } = budget
  const timezone = zoneName(budget.timezone ?? 'UTC')
  const counted = amountOf(budget)
  const span = spanOf(period, timezone, now)
  const { endsAt } = span
  const when = `${period} ${timezone} ${span.name}`
  const id = `${counted.unit} ${when}`
  if (counted.unit === 'tokens') return { span, bucket: { id, ...counted, endsAt } }
  // What is spent in one currency says nothing of another.
  return { span, bucket: { id: `cost:${currency} ${when}`, formerId: id, ...counted, endsAt } }
}

export function readBucketId (id: string): BucketWords {
  const [counted = '', period = 'total', timezone = 'UTC', start = ''] = id.split(' ')
  const [unit, currency = null] = counted.split(':')
  const known = periods.find((each) => each === period) ?? 'total'
  return { unit: unit === 'cost' ? 'cost' : 'tokens', currency, period: known, timezone, start }
}
