/** How much of a budget is gone in one of its periods. Pure. */
import type { Amounts, Bucket, OwnedBucket, Parties, Reached, Scope, BudgetUnit } from './types.js'

export interface BucketRecord {
  spent: number
  held: number
  /** From the latest ask, because a settlement does not know it. */
  amount: number
  /** The largest share that was reported, in percent. */
  toldPercent: number
  /** The previous amount, 0 for none: while a reload goes from process to process, both amounts are asked for in turn. */
  otherAmount: number
  otherToldPercent: number
  readonly endsAt: number | null
}

/** A bucket that a request holds some of. */
export interface HeldBucket {
  readonly scope: Scope
  readonly id: string
  readonly unit: BudgetUnit
}

export const toldPercents: readonly number[] = [100, 80, 50]

/** How long a bucket outlives its period: settlements may be a day late (`rememberMs`), and clocks may be set. */
export const bucketKeepMs = 2 * 24 * 60 * 60_000

const none: readonly never[] = []

export function newBucket ({ amount, endsAt }: Bucket): BucketRecord {
  return { spent: 0, held: 0, amount, toldPercent: 0, otherAmount: 0, otherToldPercent: 0, endsAt }
}

export function bucketsOf ({ keyBuckets = none, groupBuckets = none }: Parties, scope: Scope): readonly Bucket[] {
  return scope === 'key' ? keyBuckets : groupBuckets
}

/** Reads a fixed property, not `amounts[unit]`, which V8 reads more slowly: every settlement does so several times. */
export function amountIn (amounts: Amounts, unit: BudgetUnit): number {
  return unit === 'tokens' ? amounts.tokens : amounts.cost
}

/** The buckets of these parties, as `lateBuckets` of a settlement. */
export function ownedBuckets (parties: Parties, scopes: readonly Scope[]): readonly OwnedBucket[] {
  return scopes.flatMap((scope) => bucketsOf(parties, scope).map((bucket) => ({ ...bucket, scope })))
}

/** Gives a budget another amount. Its shares are reported anew when they are reached; the previous amount brings its own state back. */
export function resize (record: BucketRecord, amount: number): void {
  const { amount: otherAmount, toldPercent: otherToldPercent } = record
  record.amount = amount
  record.toldPercent = amount === record.otherAmount ? record.otherToldPercent : Math.min(otherToldPercent, reachedPercent(record))
  record.otherAmount = otherAmount
  record.otherToldPercent = otherToldPercent
}

/** Adds a share to `reached` that was not reported yet. */
export function tellReached (record: BucketRecord, scope: Scope, id: string, reached: Reached[]): void {
  const percent = reachedPercent(record)
  if (percent <= record.toldPercent) return
  record.toldPercent = percent
  reached.push({ scope, bucket: id, percent })
}

function reachedPercent ({ spent, amount }: BucketRecord): number {
  for (const percent of toldPercents) if (spent * 100 >= amount * percent) return percent
  return 0
}
