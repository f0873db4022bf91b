import t from 'tap'
import { readBucketId } from '../../plugins/limits/budgets.js'
import { Lease } from '../../plugins/limits/lease.js'
import type { LimitName, Scope } from '../../plugins/core/balances/types.js'
import { LastKnown } from '../../plugins/limits/last-known.js'
import { Remaining } from '../../plugins/limits/remaining.js'
import { RemainingBudgets } from '../../plugins/limits/remaining-budgets.js'
import type { Bucket, HoldAsk, Parties } from '../../plugins/state/index.js'

t.test('a budget that nothing is known of has its whole amount left', async (t) => {
  t.strictSame(readBucketId(''), { unit: 'tokens', currency: null, period: 'total', timezone: 'UTC', start: '' })
  const berlin = { unit: 'cost', period: 'day', timezone: 'Europe/Berlin', start: '2027-01-31' }
  t.strictSame(readBucketId('cost:EUR day Europe/Berlin 2027-01-31'), { ...berlin, currency: 'EUR' })
  t.strictSame(readBucketId('cost day Europe/Berlin 2027-01-31'), { ...berlin, currency: null }, 'as in records of older versions')
  t.equal(readBucketId('cost never').period, 'total')
  const lastKnown = new LastKnown()
  const budgets = new RemainingBudgets(lastKnown)
  const bucket: Bucket = { id: 'tokens day UTC 2027-01-31', unit: 'tokens', amount: 10, endsAt: 0 }
  const parties = { group: 'g', groupLimits: {}, groupBuckets: [bucket], key: 'k', keyLimits: {} }
  t.equal(lastKnown.leftIn('g', bucket), 10)
  budgets.note(parties, { group: null, key: null, buckets: [4] })
  t.equal(lastKnown.leftIn('g', bucket), 4)
  budgets.note({ ...parties, groupBuckets: [{ ...bucket, amount: 7 }] }, { group: null, key: null })
  t.equal(lastKnown.leftIn('g', bucket), 7, 'all of it where the store does not tell')
  t.equal(lastKnown.leftIn('g', { ...bucket, id: 'tokens day UTC 2027-02-01' }), 10, 'of another period')
})

t.test('a lease is a share of every limit', async (t) => {
  const ask = (id: string, given: Partial<HoldAsk>): HoldAsk => ({
    id, group: 'g', groupLimits: {}, key: 'k', keyLimits: {}, requests: 1, tokens: 1, floor: 0, ...given,
  })
  const nothing = { group: null, key: null }
  const whole = ({ amount }: Bucket): number => amount
  const balance = new Lease(10)
  t.match(balance.hold(ask('a', { tokens: 10, groupLimits: { balance: 100 } }), nothing, whole), { ok: true })
  t.match(
    balance.hold(ask('b', { groupLimits: { balance: 100 } }), { group: 1_000, key: null }, whole),
    { ok: false, limit: 'balance', allowed: 10 },
    'the slice stays what it was'
  )
  t.match(
    new Lease(10).hold(ask('a', { groupLimits: { balance: 100 } }), { group: 55, key: null }, whole),
    { ok: true, left: { group: 4 } },
    'of what was left'
  )
  t.match(
    new Lease(10).hold(ask('a', { keyLimits: { balance: 100 } }), { group: null, key: -5 }, whole),
    { ok: false, allowed: 0 },
    'nothing of an overdrawn one'
  )
  for (const limit of ['requestsPerMinute', 'concurrency'] as const) {
    const rates = new Lease(10)
    t.match(rates.hold(ask('a', { keyLimits: { [limit]: 3 } }), nothing, whole), { ok: true }, 'at least one')
    t.match(rates.hold(ask('b', { keyLimits: { [limit]: 3 } }), nothing, whole), { ok: false, allowed: 1 })
  }
  t.match(new Lease(10).hold(ask('a', { tokens: 11, keyLimits: { tokensPerMinute: 100 } }), nothing, whole), { ok: false, allowed: 10 })
  const bucket: Bucket = { id: 'cost day UTC 2026-11-22', unit: 'cost', amount: 1_000, endsAt: null }
  const budgets = new Lease(10)
  const inBudget = { groupLimits: { budgets: [] }, groupBuckets: [bucket], keyLimits: { budgets: [] }, keyBuckets: [bucket] }
  t.match(
    budgets.hold(ask('a', { cost: 51, ...inBudget }), nothing, () => 500), { ok: false, limit: 'budget', scope: 'group', allowed: 50 },
    'of what was left of a group, of all of a key'
  )
  t.match(budgets.hold(ask('a', { cost: 50, ...inBudget }), nothing, () => 500), { ok: true, left: { buckets: [50, 0] } })
})

t.test('what is left is known of groups and keys that have a balance', async (t) => {
  const lastKnown = new LastKnown()
  const remaining = new Remaining(lastKnown)
  const parties = { group: 'g', groupLimits: { balance: 100 }, key: 'k', keyLimits: { balance: 50 } }
  t.same(lastKnown.left(parties), { group: null, key: null })
  lastKnown.giveBack(parties, { tokens: 5, cost: 0 })
  remaining.note({ ...parties, groupLimits: {}, keyLimits: {} }, { group: null, key: null })
  remaining.note(parties, { group: null, key: null })
  t.same(remaining.samples(), [])
  remaining.note(parties, { group: 40, key: 20 })
  lastKnown.giveBack(parties, { tokens: 10, cost: 0 })
  t.same(lastKnown.left(parties), { group: 50, key: 30 })
  remaining.note({ ...parties, group: 'none', groupLimits: { balance: 0 } }, { group: -1, key: null })
  t.same(remaining.samples(), [{ labels: { group: 'g' }, value: 0.5 }, { labels: { group: 'none' }, value: 0 }])
})

t.test('what is left is the last that any app of a store heard, and each tells only what it asked for', (t) => {
  const lastKnown = new LastKnown()
  const [before, after] = [new Remaining(lastKnown), new Remaining(lastKnown)]
  const bucket = { id: 'tokens day UTC 2027-01-01', unit: 'tokens', amount: 10, endsAt: null } as const
  const parties: Parties = {
    group: 'g', groupLimits: { balance: 100 }, groupBuckets: [bucket], key: 'k', keyLimits: { balance: 50 }, keyBuckets: undefined,
  }
  before.note(parties, { group: 40, key: 20, buckets: [4] })
  t.same(lastKnown.left(parties), { group: 40, key: 20 })
  t.equal(lastKnown.leftIn('g', { ...bucket }), 4)
  t.same([after.samples(), after.budgets.samples()], [[], []])
  after.note({ ...parties, groupBuckets: [{ ...bucket }] }, { group: 30, key: 10, buckets: [3] })
  t.same(lastKnown.left(parties), { group: 30, key: 10 })
  t.equal(lastKnown.leftIn('g', bucket), 3)
  t.same(after.samples(), [{ labels: { group: 'g' }, value: 0.3 }])
  t.same(after.budgets.samples(), [{ labels: { group: 'g', period: 'day' }, value: 0.3 }])
  t.end()
})

t.test('what a refusal tells is left is known, too, and what a hold gives back', (t) => {
  const lastKnown = new LastKnown()
  const remaining = new Remaining(lastKnown)
  const bucket = { id: 'tokens day UTC 2027-01-01', unit: 'tokens', amount: 10, endsAt: null } as const
  const parties: Parties = {
    group: 'g', groupLimits: { balance: 100 }, groupBuckets: [bucket], key: 'k', keyLimits: { balance: 50 }, keyBuckets: [bucket],
  }
  const refused = (limit: LimitName, scope: Scope, free: number, id: string = bucket.id): unknown[] => {
    remaining.noteRefused(parties, { ok: false, limit, scope, bucket: id, allowed: 100, free, retryAfterMs: 0 })
    const { group, key } = lastKnown.left(parties)
    return [group, key, lastKnown.leftIn('g', bucket)]
  }
  const giveBack = (groupBuckets: readonly Bucket[]): unknown => {
    lastKnown.giveBack({ ...parties, groupBuckets }, { tokens: 4, cost: 9 })
    return [lastKnown.left(parties).group, lastKnown.leftIn('g', bucket)]
  }
  t.same(refused('requests', 'group', 1), [null, null, 10])
  t.same(refused('balance', 'group', 7), [7, null, 10])
  t.same(refused('balance', 'key', 3), [7, 3, 10])
  t.same(refused('budget', 'key', 5), [7, 3, 10], 'the budget of a key is none of the group')
  t.same(refused('budget', 'group', 5, 'tokens day UTC 2026-12-31'), [7, 3, 10])
  t.same(refused('budget', 'group', 2), [7, 3, 2])
  t.same(giveBack([bucket]), [11, 6])
  const next = { ...bucket, id: 'tokens day UTC 2027-01-02' }
  t.same(giveBack([next]), [15, 6], 'a request of another day gives nothing back to this one')
  const other = { ...bucket, id: 'tokens month UTC 2027-01' }
  remaining.note({ ...parties, groupBuckets: [next, other] }, { group: null, key: null, buckets: [1, 8, 9] })
  t.same([lastKnown.leftIn('g', next), lastKnown.leftIn('g', other)], [8, 9], 'each budget, in its newest period')
  t.end()
})
