import t from 'tap'
import type { Account, Balances, Decision, HoldAsk } from '../../plugins/state/types.js'
import { engines } from './engines.js'

type Ask = Partial<HoldAsk> & { readonly id: string }

function ask (given: Ask): HoldAsk {
  return { group: 'chat', groupLimits: {}, key: 'ci', keyLimits: {}, requests: 1, tokens: 0, floor: 0, ...given }
}

const none: Account = { spent: 0, held: 0, active: 0, requests: 0, tokens: 0 }
const settled = { group: 'chat', key: 'ci', late: [] }

for (const engine of engines) {
  t.test(`balances in ${engine.name}`, { skip: engine.skip }, async (t) => {
    const { state, clock, another, close } = await engine.open({ holdTtlMs: 10_000 })
    t.teardown(close)
    const balances: Balances = state.balances
    const hold = async (given: Ask): Promise<Decision> => await balances.hold(ask(given))
    const read = async (group: string, key?: string): Promise<Account> => await balances.read(group, key)

    t.test('a party without limits is not counted', async (t) => {
      t.same(await hold({ id: 'free', group: 'free', tokens: 7 }), { ok: true, left: { group: null, key: null } })
      t.same(await read('free'), none)
      t.same(await read('free', 'ci'), none)
    })

    t.test('a balance is held, then spent, and never goes below zero', async (t) => {
      const group = 'balance'
      const limits = { group, groupLimits: { balance: 100 }, keyLimits: { balance: 80 } }
      t.same(await hold({ id: 'b1', tokens: 60, ...limits }), { ok: true, left: { group: 40, key: 20 } })
      t.match(await hold({ id: 'b2', tokens: 21, ...limits }), {
        ok: false, limit: 'balance', scope: 'key', allowed: 80, free: 20, retryAfterMs: 0,
      })
      t.match(await hold({ id: 'b2', tokens: 41, ...limits, keyLimits: {} }), { ok: false, limit: 'balance', scope: 'group', free: 40 })
      t.match(await read(group), { spent: 0, held: 60, active: 1 }, 'a refusal changes nothing')
      await balances.settle({ ...settled, id: 'b1', group, tokens: 25 })
      t.match(await read(group), { spent: 25, held: 0, active: 0 })
      t.match(await read(group, 'ci'), { spent: 25, held: 0, active: 0 })
      t.match(await hold({ id: 'b3', tokens: 55, ...limits }), { ok: true, left: { group: 20, key: 0 } })
      t.match(
        await hold({ id: 'b4', tokens: 0, ...limits }), { ok: false, limit: 'balance' }, 'nothing is left for a request of unknown size'
      )
      await balances.settle({ ...settled, id: 'b3', group, tokens: 100 })
      t.match(await hold({ id: 'b5', tokens: 0, ...limits }), { ok: false, free: 0 }, 'what was overdrawn is not free')
    })

    t.test('without a balance nothing is taken from one: it begins with what is used from then on', async (t) => {
      const group = 'begins'
      for (const [id, groupLimits] of Object.entries({ w1: { concurrency: 5 }, w2: { balance: 100 } })) {
        t.match(await hold({ id, group, groupLimits, keyLimits: groupLimits, tokens: 30 }), { ok: true })
        await balances.settle({ ...settled, id, group, tokens: 20 })
      }
      for (const key of [undefined, 'ci']) t.match(await read(group, key), { spent: 20, held: 0 })
      t.match(await hold({ id: 'w3', group, groupLimits: { concurrency: 5 }, tokens: 1, floor: 1 }), { ok: true })
      clock.now += 20_000
      t.match(await read(group), { spent: 20, held: 0 }, 'nor is the floor of a hold that expired')
    })

    t.test('a second step adds to the hold of the first', async (t) => {
      const limits = { group: 'steps', groupLimits: { balance: 100, concurrency: 1, requestsPerMinute: 1 } }
      t.match(await hold({ id: 's1', ...limits }), { ok: true, left: { group: 100 } })
      t.match(await hold({ id: 's1', requests: 0, tokens: 101, ...limits }), { ok: false, limit: 'balance' })
      t.match(await hold({ id: 's1', requests: 0, tokens: 30, ...limits }), { ok: true, left: { group: 70 } })
      t.match(await read('steps'), { held: 30, active: 1, requests: 1, tokens: 30 })
      await balances.settle({ ...settled, id: 's1', group: 'steps', tokens: 0 })
      t.match(await read('steps'), { spent: 0, held: 0, active: 0, requests: 1, tokens: 0 })
      const later = { group: 'later step', groupLimits: { balance: 1_000 } }
      await hold({ id: 's2', ...later })
      clock.now += 9_000
      await hold({ id: 's2', requests: 0, tokens: 30, ...later })
      await balances.settle({ ...settled, id: 's2', group: 'later step', tokens: 50 })
      clock.now += 52_000
      t.match(await read('later step'), { requests: 0, tokens: 50 }, 'whose tokens count from then')
    })

    t.test('a rate or a concurrency that is lowered between the steps of a request stops others alone', async (t) => {
      const group = 'lowered'
      const lowered = { group, groupLimits: { requestsPerMinute: 1, concurrency: 1 } }
      for (const id of ['l1', 'l2']) t.match(await hold({ id, group, groupLimits: { requestsPerMinute: 2, concurrency: 2 } }), { ok: true })
      t.match(await hold({ id: 'l1', requests: 0, tokens: 5, ...lowered }), { ok: true })
      t.match(await hold({ id: 'l3', ...lowered }), { ok: false, limit: 'concurrency' })
      for (const id of ['l1', 'l2']) await balances.settle({ ...settled, id, group, tokens: 5 })
      t.match(await hold({ id: 'l3', ...lowered }), { ok: false, limit: 'requests' })
    })

    t.test('requests a minute slide, and say when to come again', async (t) => {
      const limits = { group: 'rate', keyLimits: { requestsPerMinute: 3 } }
      const from = clock.now
      for (const id of ['r1', 'r2', 'r3']) {
        t.match(await hold({ id, ...limits }), { ok: true })
        clock.now += 10_000
      }
      t.match(await hold({ id: 'r4', ...limits }), {
        ok: false, limit: 'requests', scope: 'key', allowed: 3, free: 0, retryAfterMs: from + 61_000 - clock.now,
      })
      clock.now = from + 60_999
      t.match(await hold({ id: 'r4', ...limits }), { ok: false, retryAfterMs: 1 })
      clock.now += 1
      t.match(await hold({ id: 'r4', ...limits }), { ok: true })
      t.match(await hold({ id: 'r5', ...limits }), { ok: false, retryAfterMs: 10_000 })
      clock.now += 500_000
      t.match(await read('rate', 'ci'), { requests: 0 })
    })

    t.test('a clock that is set back stops nobody for longer than a minute more', async (t) => {
      const limits = { group: 'clock', groupLimits: { requestsPerMinute: 2, tokensPerMinute: 1_000, balance: 1_000 } }
      const from = clock.now
      for (const id of ['k1', 'k2']) t.match(await hold({ id, tokens: 10, ...limits }), { ok: true })
      clock.now -= 30_000
      t.match(await hold({ id: 'k3', ...limits }), { ok: false, limit: 'requests', retryAfterMs: 91_000 - from % 1_000 })
      clock.now -= 3_600_000
      t.match(await read('clock'), { requests: 0, tokens: 0 })
      for (const id of ['k3', 'k4']) t.match(await hold({ id, tokens: 10, ...limits }), { ok: true })
      t.match(await hold({ id: 'k5', ...limits }), { ok: false, limit: 'requests', retryAfterMs: 61_000 - from % 1_000 })
      await balances.settle({ ...settled, id: 'k1', group: 'clock', tokens: 4 })
      t.match(await read('clock'), { tokens: 20 }, 'what was counted before it was set back is not taken from what came after')
      await balances.settle({ ...settled, id: 'k2', group: 'clock', tokens: 15 })
      t.match(await read('clock'), { spent: 19, requests: 2, tokens: 25 }, 'of what was used beyond it only the excess counts')
      clock.now = from
    })

    t.test('tokens a minute count what was held, then what was used', async (t) => {
      const limits = { group: 'tokens', groupLimits: { tokensPerMinute: 100, balance: 1_000 } }
      await hold({ id: 't1', tokens: 90, ...limits })
      t.match(await hold({ id: 't2', tokens: 11, ...limits }), { ok: false, limit: 'tokens', allowed: 100, free: 10, retryAfterMs: 61_000 })
      await balances.settle({ ...settled, id: 't1', group: 'tokens', tokens: 40 })
      t.match(await read('tokens'), { tokens: 40 })
      t.match(await hold({ id: 't2', tokens: 50, ...limits }), { ok: true })
      const more = await hold({ id: 't3', tokens: 500, ...limits })
      t.match(more, { ok: false, limit: 'tokens', retryAfterMs: 61_000 }, 'more than there ever is')
      clock.now += 100_000
      await balances.renew('tokens', ['t2'])
      await balances.settle({ ...settled, id: 't2', group: 'tokens', tokens: 65 })
      t.match(await read('tokens'), { spent: 105, tokens: 15 }, 'of a request that outlived the minute only the excess counts in this one')
      await hold({ id: 't4', tokens: 5, ...limits })
      clock.now += 100_000
      await balances.settle({ ...settled, id: 't4', group: 'tokens', tokens: 4 })
      t.match(await read('tokens'), { spent: 109, tokens: 0 })
      await hold({ id: 't5', tokens: 5, ...limits })
      clock.now += 61_000
      await balances.renew('tokens', ['t5'])
      await hold({ id: 't6', tokens: 5, ...limits })
      await balances.settle({ ...settled, id: 't5', group: 'tokens', tokens: 1 })
      t.match(await read('tokens'), { spent: 110, tokens: 5 }, 'one that has just left the minute gives nothing back to this one')
    })

    t.test('all that was counted in one second stays counted when an older one leaves the minute', async (t) => {
      const limits = { group: 'second', groupLimits: { requestsPerMinute: 100, tokensPerMinute: 1_000 } }
      await hold({ id: 'o1', tokens: 10, ...limits })
      clock.now += 5_000
      for (const id of ['o2', 'o3']) await hold({ id, tokens: 20, ...limits })
      for (const [id, tokens] of [['o1', 10], ['o2', 5], ['o3', 20]] as const) {
        await balances.settle({ ...settled, id, group: 'second', tokens })
      }
      clock.now += 56_000
      t.match(await read('second'), { requests: 2, tokens: 25 })
    })

    t.test('a minute counts what is in it, however long somebody goes on asking', async (t) => {
      const limits = { group: 'round', groupLimits: { requestsPerMinute: 100, tokensPerMinute: 1_000 } }
      for (let at = 0; at < 8; at += 1) {
        await hold({ id: `r${at}`, tokens: 10, ...limits })
        t.match(await read('round'), at === 0 ? { requests: 1, tokens: 10 } : { requests: 2, tokens: 20 })
        clock.now += 30_500
        await balances.settle({ ...settled, id: `r${at}`, group: 'round', tokens: 10 })
      }
    })

    t.test('concurrency is freed by leaving, before the tokens are known', async (t) => {
      const limits = { group: 'places', groupLimits: { concurrency: 2, balance: 1_000 } }
      await hold({ id: 'c1', tokens: 3, ...limits })
      await hold({ id: 'c2', ...limits })
      t.match(await hold({ id: 'c3', ...limits }), { ok: false, limit: 'concurrency', allowed: 2, free: 0, retryAfterMs: 1_000 })
      for (let i = 0; i < 2; i += 1) await balances.leave('c1', 'places')
      await balances.leave('nobody', 'places')
      t.match(await read('places'), { active: 1, held: 3 })
      t.match(await hold({ id: 'c3', ...limits }), { ok: true })
      await hold({ id: 'c1', requests: 0, tokens: 1, ...limits })
      for (const id of ['c1', 'c2', 'c3']) await balances.settle({ ...settled, id, group: 'places', tokens: 1 })
      t.match(await read('places'), { active: 0, held: 0, spent: 3 })
    })

    t.test('a settlement counts once, whatever comes after it', async (t) => {
      const limits = { group: 'once', groupLimits: { balance: 100 } }
      await hold({ id: 'o1', tokens: 50, ...limits })
      for (const tokens of [20, 20, 30]) await balances.settle({ ...settled, id: 'o1', group: 'once', tokens })
      await balances.leave('o1', 'once')
      await balances.renew('once', ['o1'])
      t.match(await read('once'), { spent: 20, held: 0, active: 0 })
    })

    t.test('an expired hold is charged its floor, and a late settlement still counts once', async (t) => {
      const limits = { group: 'swept', groupLimits: { balance: 100, concurrency: 9 }, keyLimits: { balance: 100 } }
      await hold({ id: 'e1', tokens: 50, floor: 7, ...limits })
      await hold({ id: 'e2', tokens: 10, floor: 1, ...limits })
      await hold({ id: 'e3', tokens: 10, floor: 1, ...limits })
      await balances.leave('e3', 'swept')
      clock.now += 9_999
      await balances.renew('swept', ['e2', 'nobody'])
      t.match(await read('swept'), { spent: 0, held: 70, active: 2 })
      clock.now += 1
      for (let i = 0; i < 2; i += 1) t.match(await read('swept'), { spent: 8, held: 10, active: 1 })
      t.match(await read('swept', 'ci'), { spent: 8, held: 10, active: 1 })
      for (let i = 0; i < 2; i += 1) await balances.settle({ ...settled, id: 'e1', group: 'swept', tokens: 33 })
      t.match(await read('swept'), { spent: 34, held: 10, active: 1 })
      clock.now += 10_000
      t.match(await hold({ id: 'e4', tokens: 65, ...limits }), { ok: true }, 'asking sweeps first')
      clock.now += 25 * 60 * 60_000
      for (let i = 0; i < 2; i += 1) t.match(await read('swept'), { spent: 35, held: 0, active: 0 })
      await balances.settle({ ...settled, id: 'e2', group: 'swept', tokens: 9 })
      t.match(await read('swept'), { spent: 35 }, 'charges are remembered for a day')
    })

    t.test('a request whose place expired while its body came takes one anew, if there is one', async (t) => {
      const limits = { group: 'anew', groupLimits: { concurrency: 1, balance: 100 } }
      t.match(await hold({ id: 'a1', ...limits }), { ok: true })
      clock.now += 10_000
      t.match(await hold({ id: 'a2', ...limits }), { ok: true })
      t.match(await hold({ id: 'a1', requests: 0, tokens: 30, ...limits }), { ok: false, limit: 'concurrency' })
      await balances.settle({ ...settled, id: 'a2', group: 'anew', tokens: 0 })
      t.match(await hold({ id: 'a1', requests: 0, tokens: 30, ...limits }), { ok: true, left: { group: 70 } })
      t.match(await read('anew'), { held: 30, active: 1 })
      await balances.settle({ ...settled, id: 'a1', group: 'anew', tokens: 20 })
      t.match(await read('anew'), { spent: 20, held: 0, active: 0 })
    })

    t.test('holds that stay open among many that end are due in the order in which they were last renewed', async (t) => {
      const limits = { group: 'churn', groupLimits: { concurrency: 5_000, balance: 1_000 } }
      const stays = ['s1', 's2', 's3']
      for (const id of stays) {
        await hold({ id, floor: 1, ...limits })
        clock.now += 1
      }
      const passing = Array.from({ length: 2_200 }, (_, i) => `p${i}`)
      for (let at = 0; at < passing.length; at += 100) {
        const some = passing.slice(at, at + 100)
        await Promise.all(some.map((id) => hold({ id, ...limits })))
        await Promise.all(some.map((id) => balances.settle({ ...settled, id, group: 'churn', tokens: 0 })))
      }
      t.match(await read('churn'), { spent: 0, active: 3 })
      await balances.renew('churn', ['s1'])
      clock.now += 9_998
      t.match(await read('churn'), { spent: 1, active: 2 }, 'the second is due')
      clock.now += 1
      t.match(await read('churn'), { spent: 2, active: 1 }, 'the third is due')
      clock.now += 1
      t.match(await read('churn'), { spent: 3, active: 0 }, 'the first, which was renewed, is due last')
    })

    t.test('what was used while the store was away is charged late, once', async (t) => {
      const late = ['group', 'key'] as const
      for (let i = 0; i < 2; i += 1) await balances.settle({ id: 'l1', group: 'late', key: 'ci', tokens: 12, late })
      await balances.settle({ id: 'l2', group: 'late', key: 'ci', tokens: 5, late: ['group'] })
      t.match(await read('late'), { spent: 17, held: 0, active: 0, tokens: 17 })
      t.match(await read('late', 'ci'), { spent: 12 })
      await hold({ id: 'l3', group: 'late', tokens: 9, groupLimits: { balance: 100 } })
      for (let i = 0; i < 2; i += 1) await balances.settle({ id: 'l3', group: 'late', key: 'ci', tokens: 4, late: ['group'] })
      t.match(await read('late'), { spent: 21, held: 0, active: 0 }, 'also where the hold was made after all')
      await balances.renew('late', ['l1'])
      clock.now += 20_000
      t.match(await read('late'), { spent: 21 })
      await balances.settle({ id: 'l1', group: 'late', key: 'ci', tokens: 12, late })
      t.match(await read('late'), { spent: 21 }, 'and what is renewed after that is remembered no shorter')
    })

    t.test('what was used while the store was away is taken from no balance that is set later', async (t) => {
      const parties = { group: 'later', key: 'ci', late: ['key', 'group'], lateBalances: ['group'] } as const
      for (const tokens of [12, 14]) await balances.settle({ id: 'm1', tokens, ...parties })
      t.match(await read('later', 'ci'), { spent: 0, held: 0, active: 0, tokens: 12 })
      t.match(await read('later'), { spent: 14 })
    })

    t.test('an ask that its own settlement has overtaken holds nothing', async (t) => {
      const limits = { group: 'overtaken', groupLimits: { balance: 100 } }
      await balances.settle({ id: 'v1', group: 'overtaken', key: 'ci', tokens: 12, late: ['group'] })
      for (const requests of [1, 0]) t.match(await hold({ id: 'v1', requests, tokens: 50, floor: 9, ...limits }), { ok: true })
      t.match(await read('overtaken'), { spent: 12, held: 0, active: 0 })
      clock.now += 20_000
      t.match(await read('overtaken'), { spent: 12, held: 0, active: 0 }, 'and is not charged its floor')
      await balances.settle({ id: 'v1', group: 'overtaken', key: 'ci', tokens: 12, late: ['group'] })
      t.match(await read('overtaken'), { spent: 12 }, 'what was charged is still known')
    })

    t.test('names cannot meet', async (t) => {
      const keyLimits = { balance: 10 }
      await hold({ id: 'n1', group: 'a', key: 'b:c', tokens: 3, keyLimits })
      await hold({ id: 'n2', group: 'a:b', key: 'c', tokens: 4, keyLimits })
      await hold({ id: 'n3', group: '}{', key: '', tokens: 5, keyLimits })
      t.match(await read('a', 'b:c'), { held: 3 })
      t.match(await read('a:b', 'c'), { held: 4 })
      t.match(await read('}{', ''), { held: 5 })
      t.match(await read('}{'), { held: 0 })
    })

    t.test('large numbers stay whole', async (t) => {
      const balance = 9_007_199_254_740_991
      await hold({ id: 'x1', group: 'large', groupLimits: { balance }, tokens: balance - 1 })
      t.match(await hold({ id: 'x2', group: 'large', groupLimits: { balance }, tokens: 2 }), { ok: false, allowed: balance, free: 1 })
      await balances.settle({ ...settled, id: 'x1', group: 'large', tokens: balance - 2 })
      t.match(await read('large'), { spent: balance - 2, held: 0 })
    })

    t.test('every process sees the same account', { skip: another === null && 'one process only' }, async (t) => {
      if (another === null) return
      const both = [balances, (await another()).balances]
      const limits = { group: 'shared', groupLimits: { balance: 50 }, tokens: 1 }
      const asks = Array.from({ length: 200 }, async (_, i) => await both[i % 2]?.hold(ask({ id: `h${i}`, ...limits })))
      const admitted = (await Promise.all(asks)).filter((decision) => decision?.ok)
      t.equal(admitted.length, 50)
      t.match(await both[1]?.read('shared'), { held: 50, spent: 0 })
    })
  })
}
