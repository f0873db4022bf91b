/** What stays of keys that never come back, in each engine. */
import { Redis } from 'ioredis'
import t from 'tap'
import { settle } from '../../plugins/core/balances/endings.js'
import { MemoryGroupStore } from '../../plugins/core/balances/memory-group-store.js'
import { hold } from '../../plugins/core/balances/rules.js'
import { lmdbBalances } from '../../plugins/state/lmdb/balances.js'
import { openLmdb } from '../../plugins/state/lmdb/open.js'
import { openState } from '../../plugins/state/index.js'
import type { Balances, Bucket, HoldAsk, Limits } from '../../plugins/state/types.js'
import { startRedis, withoutRedis } from './redis/server.js'

const start = 1_700_000_000_000
const day = 24 * 60 * 60_000
const group = 'chat'
const ends = (endsAt: number | null): Bucket => ({ id: `until ${endsAt}`, unit: 'tokens', amount: 1_000, endsAt })

type Steps = Pick<Balances, 'hold' | 'settle'>
const clock = { now: start }
let made = 0

async function spend ({ hold, settle }: Steps, key: string, keyLimits: Limits, keyBuckets?: Bucket[]): Promise<void> {
  made += 1
  const ask: HoldAsk = {
    id: `r${made}`, group, groupLimits: { concurrency: 9 }, key, keyLimits, keyBuckets, requests: 1, tokens: 9, floor: 1,
  }
  await hold(ask)
  await settle({ id: ask.id, group, key, tokens: 5, late: [] })
}

/** Two hundred keys with a rate, of which ten come at a time; and before them some that have more. */
async function pass (steps: Steps): Promise<void> {
  await spend(steps, 'balance', { balance: 100 })
  await spend(steps, 'total', { budgets: [] }, [ends(null)])
  await spend(steps, 'period', { budgets: [] }, [ends(clock.now + day)])
  await spend(steps, 'both', { budgets: [] }, [ends(clock.now), ends(null)])
  for (let at = 0; at < 200; at += 1) {
    if (at % 10 === 0) clock.now += 61_000
    await spend(steps, `k${at}`, { requestsPerMinute: 5 })
  }
}

t.beforeEach(() => { clock.now = start })

t.test('memory forgets idle keys, and keeps what they owe', async (t) => {
  const store = new MemoryGroupStore()
  const engine = { storeOf: () => store, now: () => clock.now, holdTtlMs: 60_000 }
  const steps: Steps = { hold: (ask) => hold(engine, ask), settle: (settlement) => settle(engine, settlement) }
  await pass(steps)
  const known = Array.from({ length: 200 }, (_, at) => store.account(`k${at}`))
  t.ok(known.filter(Boolean).length <= 20, `${known.filter(Boolean).length} of 200 stay`)
  t.notOk(known.slice(190).includes(undefined), 'those whose minute is not over among them')
  t.match(store.account('balance'), { spent: 5 }, 'money stays')
  t.match(store.bucket('total', 'until null'), { spent: 5 })
  t.match(store.bucket('period', `until ${start + day}`), { spent: 5 }, 'a period that is not over stays')
  clock.now += 4 * day
  for (let at = 0; at < 30; at += 1) await spend(steps, `l${at}`, { requestsPerMinute: 5 })
  t.equal(store.bucket('period', `until ${start + day}`), undefined)
  t.equal(store.account('period'), undefined)
  t.equal(store.bucket('both', `until ${start}`), undefined)
  t.match(store.bucket('both', 'until null'), { spent: 5 })
})

t.test('lmdb forgets idle keys, and keeps what they owe', async (t) => {
  const files = await openLmdb(t.testdir({}))
  const balances = lmdbBalances(files, { now: () => clock.now, holdTtlMs: 60_000 })
  await pass(balances)
  const keys = (): string[] => [...files.tables.accounts.getKeys()].filter((name) => name.startsWith('k:'))
  t.ok(keys().length <= 24, `${keys().length} of 204 stay`)
  t.equal(keys().filter((name) => /:k19\d$/.test(name)).length, 10, 'those whose minute is not over among them')
  t.match(await balances.read(group, 'balance'), { spent: 5 }, 'money stays')
  t.match(await balances.readBucket('until null', group, 'total'), { spent: 5 })
  t.match(await balances.readBucket(`until ${start + day}`, group, 'period'), { spent: 5 })
  clock.now += 4 * day
  for (let at = 0; at < 30; at += 1) await spend(balances, `l${at}`, { requestsPerMinute: 5 })
  t.same(keys().filter((name) => !/:[kl]\d+$/.test(name)), ['k:4:chat:balance', 'k:4:chat:both', 'k:4:chat:total'])
  t.equal([...files.tables.buckets.getKeys()].length, 2)
  await balances.close()
  t.same([...files.spent.getKeys()].sort(), [
    'b:13:k:4:chat:both:until null', 'b:14:k:4:chat:total:until null', 'k:4:chat:balance',
  ], 'nor does the disk have more')
  await files.close()
})

t.test('lmdb forgets idle keys, whatever their names begin with', async (t) => {
  const files = await openLmdb(t.testdir({}))
  const balances = lmdbBalances(files, { now: () => clock.now, holdTtlMs: 60_000 })
  for (let at = 0; at < 30; at += 1) {
    clock.now += 61_000
    for (const first of ['A', 'é', '語', '🔑']) await spend(balances, `${first}${at}`, { requestsPerMinute: 5 })
  }
  const left = [...files.tables.accounts.getKeys()].filter((name) => name.startsWith('k:'))
  t.ok(left.length <= 16, `${left.length} of 120 stay`)
  await balances.close()
  await files.close()
})

t.test('redis forgets idle keys, and keeps what they owe', { skip: withoutRedis }, async (t) => {
  const server = await startRedis()
  const state = await openState({ engine: 'redis', url: server.url, path: t.testdir({}), commandTimeoutMs: 5_000 }, () => clock.now)
  const client = new Redis(server.url)
  t.teardown(async () => {
    client.disconnect()
    await state.close()
    await server.stop()
  })
  await pass(state.balances)
  t.same(await client.hgetall('llm-gateway:{chat}:accounts'), { 's:balance': '5' })
  t.match(await state.balances.readBucket('until null', group, 'total'), { spent: 5 })
  const lateBuckets = [{ ...ends(clock.now), scope: 'key' as const }]
  await state.balances.settle({ id: 'late', group, key: 'late', tokens: 5, late: ['key'], lateBuckets, lateBalances: [] })
  for (const window of ['minute', 'minute:k0']) t.ok(await client.ttl(`llm-gateway:{chat}:${window}`) > 60, 'a minute goes by itself')
  clock.now += 4 * day
  await spend(state.balances, 'period', { budgets: [] }, [ends(clock.now + day)])
  const left = `k6:period|until ${clock.now + day}`
  t.same(await client.zrange('llm-gateway:{chat}:ends', '0', '-1'), [left], 'of a period that is over nothing stays')
  const fields = [...['total', 'both'].map((key) => `k${key.length}:${key}|until null`), left]
    .flatMap((name) => ['s', 'h', 'a', 't'].map((field) => field + name))
  t.same(new Set(await client.hkeys('llm-gateway:{chat}:buckets')), new Set(fields))
})
