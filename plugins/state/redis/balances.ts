import { limited } from '../../core/balances/parties.js'
import { StoreDownError } from '../../core/balances/store-down.js'
import type { RedisLink } from './link.js'
import { redisTurns, type RedisTurnsOptions, type Step } from './turns.js'
import type {
  Account, Balances, Bucket, Decision, HoldAsk, Left, LimitName, Limits, Reached, Scope, Settlement, Spending,
} from '../types.js'

/** Balances that every process with the same Redis shares. The steps of one turn of the event loop are one command for each group. */
export function redisBalances (link: RedisLink, options: RedisTurnsOptions): Balances {
  const turns = redisTurns(link, options)
  return {
    holdTtlMs: options.holdTtlMs,
    hold: (ask) => turns.soon(ask.group, holdStep(ask), decisionOf),
    leave: (id, group) => turns.soon(group, { name: 'leave', key: null, values: [id] }, nothing),
    settle: (settlement) => turns.later(settlement.group, settleStep(settlement), reachedOf),
    renew: (group, ids) => turns.soon(group, { name: 'renew', key: null, values: ids }, nothing),
    read: (group, key) => turns.soon(group, { name: 'read', key: key ?? '', values: [scopeOf(key), key ?? ''] }, accountOf),
    readBucket: (id, group, key) => turns.soon(
      group, { name: 'readBucket', key: null, values: [scopeOf(key), key ?? '', id] }, spendingOf
    ),
    close: async () => {},
  }
}

function scopeOf (key: string | undefined): Scope {
  return key === undefined ? 'group' : 'key'
}

function nothing (): void {}

function holdStep (ask: HoldAsk): Step {
  const { id, key, requests, tokens, floor, cost = 0, costFloor = 0 } = ask
  const limits = [...partyValues(ask.keyLimits, ask.keyBuckets), ...partyValues(ask.groupLimits, ask.groupBuckets)]
  return { name: 'hold', key, values: [id, key], more: [requests, tokens, floor, cost, costFloor, ...limits] }
}

function settleStep ({ id, key, tokens, cost = 0, late, lateBuckets = [], lateBalances = late }: Settlement): Step {
  const parties = late.flatMap((scope) => [scope, lateBalances.includes(scope) ? 1 : 0])
  const buckets = lateBuckets.flatMap((bucket) => [bucket.scope, ...bucketValues(bucket)])
  return { name: 'settle', key, values: [id, key], more: [tokens, cost, late.length, ...parties, lateBuckets.length, ...buckets] }
}

function partyValues (limits: Limits, buckets: readonly Bucket[] = []): Array<string | number> {
  const { balance = '', concurrency = '', requestsPerMinute = '', tokensPerMinute = '' } = limits
  return [
    limited(limits) ? 1 : 0, balance, concurrency, requestsPerMinute, tokensPerMinute, buckets.length, ...buckets.flatMap(bucketValues),
  ]
}

function bucketValues ({ id, unit, amount, endsAt, formerId = '' }: Bucket): Array<string | number> {
  return [id, unit, amount, endsAt ?? '', formerId]
}

const limitNames: readonly LimitName[] = ['requests', 'tokens', 'concurrency', 'balance', 'budget']

function decisionOf ([ok, reached, ...rest]: readonly unknown[]): Decision {
  const changed = Array.isArray(reached) && reached.length > 0 ? { reached: reachedOf(reached) } : null
  if (ok === 1) return { ok: true, left: leftOf(rest), ...changed }
  const [name, scope, allowed, free, retryAfterMs, bucket] = rest
  const limit = limitNames.find((known) => known === name)
  if (limit === undefined) throw new StoreDownError('gave an answer that cannot be read')
  return {
    ok: false,
    limit,
    scope: scope === 'key' ? 'key' : 'group',
    allowed: Number(allowed),
    free: Number(free),
    retryAfterMs: Number(retryAfterMs),
    ...typeof bucket === 'string' && { bucket },
    ...changed,
  }
}

function leftOf ([key, group, ...buckets]: readonly unknown[]): Left {
  const left = { key: numberOrNull(key), group: numberOrNull(group) }
  return buckets.length === 0 ? left : { ...left, buckets: buckets.map(Number) }
}

function numberOrNull (value: unknown): number | null {
  return value === '' ? null : Number(value)
}

function reachedOf (values: readonly unknown[]): Reached[] {
  const reached: Reached[] = []
  for (let at = 0; at + 2 < values.length; at += 3) {
    reached.push({ scope: values[at] === 'key' ? 'key' : 'group', bucket: String(values[at + 1]), percent: Number(values[at + 2]) })
  }
  return reached
}

function accountOf ([spent, held, active, requests, tokens]: readonly unknown[]): Account {
  return {
    spent: Number(spent), held: Number(held), active: Number(active), requests: Number(requests), tokens: Number(tokens),
  }
}

function spendingOf ([spent, held]: readonly unknown[]): Spending {
  return { spent: Number(spent), held: Number(held) }
}
