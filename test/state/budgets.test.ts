/** Buckets of budgets, on every engine: what is held and settled in them, over several openings of one state. */
import { deepStrictEqual, equal } from 'node:assert'
import fc from 'fast-check'
import t from 'tap'
import type { Bucket, Decision, HoldAsk, Reached } from '../../plugins/state/types.js'
import { engines } from './engines.js'

const day = 24 * 60 * 60_000

const step = fc.record({
  what: fc.constantFrom('hold' as const, 'hold' as const, 'settle' as const, 'resize' as const, 'hold without' as const, 'expire' as const),
  n: fc.integer({ min: 0, max: 120 }),
})

function ask (given: Partial<HoldAsk> & { readonly id: string }): HoldAsk {
  return { group: 'chat', groupLimits: { budgets: [] }, key: 'ci', keyLimits: {}, requests: 1, tokens: 0, floor: 0, ...given }
}

const settled = { group: 'chat', key: 'ci', tokens: 0, late: [] }

for (const engine of engines) {
  t.test(`budgets in ${engine.name}`, { skip: engine.skip }, async (t) => {
    const { state: { balances }, clock, another, close } = await engine.open({ holdTtlMs: 10_000 })
    t.teardown(close)
    const other = another === null ? balances : (await another()).balances
    const bucket = (id: string, amount: number, unit: Bucket['unit'] = 'cost', endsAt: number | null = clock.now + day): Bucket => ({
      id, unit, amount, endsAt,
    })

    t.test('are held, refused with what is free, and settled to what was used', async (t) => {
      const groupBuckets = [bucket('a', 100), bucket('b', 1_000, 'tokens', null)]
      t.same(await balances.hold(ask({ id: 'h1', tokens: 10, cost: 60, groupBuckets })), {
        ok: true, left: { group: null, key: null, buckets: [40, 990] },
      })
      t.match(await other.hold(ask({ id: 'h2', tokens: 10, cost: 41, groupBuckets })), {
        ok: false, limit: 'budget', scope: 'group', bucket: 'a', allowed: 100, free: 40, retryAfterMs: day,
      })
      t.match(await other.hold(ask({ id: 'h2', tokens: 991, cost: 0, groupBuckets })), {
        ok: false, bucket: 'b', free: 990, retryAfterMs: 0,
      })
      t.match(await other.hold(ask({ id: 'h3', cost: 0, groupBuckets: [bucket('nothing', 0)] })), {
        ok: false, limit: 'budget',
      }, 'nothing is left for a request whose cost is not known')
      await balances.settle({ ...settled, id: 'h1', tokens: 7, cost: 20 })
      t.same(await other.readBucket('a', 'chat'), { spent: 20, held: 0 })
      t.same(await other.readBucket('b', 'chat'), { spent: 7, held: 0 })
      t.same(await other.readBucket('nothing', 'chat', 'ci'), { spent: 0, held: 0 })
    })

    t.test('a hold that is added to is settled as a whole, or charged its last floor', async (t) => {
      const groupBuckets = [bucket('added', 100), bucket('added tokens', 100, 'tokens')]
      const both = async (): Promise<unknown[]> => {
        return await Promise.all(['added', 'added tokens'].map(async (id) => await other.readBucket(id, 'chat')))
      }
      for (const id of ['w1', 'w2']) {
        await balances.hold(ask({ id, tokens: 5, floor: 1, cost: 10, costFloor: 2, groupBuckets }))
        await other.hold(ask({ id, requests: 0, tokens: 7, floor: 3, cost: 20, costFloor: 4, groupBuckets }))
      }
      t.same(await both(), [{ spent: 0, held: 60 }, { spent: 0, held: 24 }])
      await balances.settle({ ...settled, id: 'w1', tokens: 6, cost: 8 })
      t.same(await both(), [{ spent: 8, held: 30 }, { spent: 6, held: 12 }])
      clock.now += 20_000
      t.same(await both(), [{ spent: 12, held: 0 }, { spent: 9, held: 0 }])
    })

    t.test('have room for the last unit, and with none of it for nobody, whatever is asked for', async (t) => {
      const last = async (id: string, cost: number): Promise<Decision> =>
        await balances.hold(ask({ id, cost, groupBuckets: [bucket('last', 2)] }))
      t.match(await last('n1', 1), { ok: true })
      t.match(await last('n2', 2), { ok: false, free: 1 })
      t.match(await last('n3', 1), { ok: true, left: { buckets: [0] } })
      t.match(await last('n4', 0), { ok: false, free: 0 })
    })

    t.test('tell once what is reached, whichever process made them reach it', async (t) => {
      const reached: Reached[] = []
      const spend = async (id: string, cost: number, amount = 100): Promise<void> => {
        for (const [at, by] of [balances, other].entries()) {
          const groupBuckets = [bucket('told', amount)]
          reached.push(...(await by.hold(ask({ id: `${id}${at}`, cost: 1, groupBuckets }))).reached ?? [])
          reached.push(...await by.settle({ ...settled, id: `${id}${at}`, cost: cost / 2 }) ?? [])
        }
      }
      await spend('t', 60)
      await spend('u', 20)
      t.same(reached, [{ scope: 'group', bucket: 'told', percent: 50 }, { scope: 'group', bucket: 'told', percent: 80 }])
      await spend('v', 4, 1_000)
      await spend('w', 420, 1_000)
      t.same(reached.slice(2), [{ scope: 'group', bucket: 'told', percent: 50 }], 'of a budget that was raised once more')
      t.match(
        await balances.hold(ask({ id: 'x', cost: 1, groupBuckets: [bucket('told', 400)] })),
        { ok: false, limit: 'budget' },
        'and lowered below what is spent'
      )
      t.match(await balances.hold(ask({ id: 'x', cost: 1 })), { ok: true }, 'and taken away')
    })

    t.test('that are lowered tell what they reach by it at the next ask, also one that is refused, and once', async (t) => {
      const asked = async (by: typeof balances, id: string, amount: number): Promise<unknown> => {
        const { ok, reached = [] } = await by.hold(ask({
          id, cost: 1, groupBuckets: [bucket('before', 100), bucket('lowered', amount), bucket('after', 100)],
        }))
        return [ok, reached.map(({ bucket, percent }) => `${bucket} ${percent}`)]
      }
      t.same(await asked(balances, 'l1', 1_000), [true, []])
      await balances.settle({ ...settled, id: 'l1', cost: 90 })
      t.same(await asked(other, 'l2', 180), [true, ['lowered 50']])
      t.same(await asked(balances, 'l3', 90), [false, ['lowered 100']])
      t.same(await asked(other, 'l4', 90), [false, []])
      t.same(await asked(balances, 'l5', 180), [true, []], 'the one before comes back')
      t.same(await asked(other, 'l6', 1_000), [true, []])
      t.same(await asked(other, 'l7', 100), [true, ['lowered 80']], 'of another one it is told again')
    })

    t.test('that are raised within a share of them tell it no more, and the next one', async (t) => {
      const spend = async (by: typeof balances, id: string, amount: number, cost: number): Promise<number[]> => {
        const { reached = [] } = await by.hold(ask({ id, cost: 1, groupBuckets: [bucket('raised', amount)] }))
        return [...reached, ...await by.settle({ ...settled, id, cost }) ?? []].map(({ percent }) => percent)
      }
      t.same(await spend(balances, 'm1', 100, 60), [50])
      t.same(await spend(other, 'm2', 110, 1), [], 'of which half is spent, too')
      t.same(await spend(balances, 'm3', 110, 30), [80])
    })

    t.test('that have another name than before go on from what is spent and held by the former one, once', async (t) => {
      const named = (id: string, formerId: string): Bucket => ({ ...bucket(id, 100), formerId })
      await balances.hold(ask({ id: 'r1', cost: 10, groupBuckets: [bucket('former', 100)] }))
      await balances.settle({ ...settled, id: 'r1', cost: 60 })
      await balances.hold(ask({ id: 'r2', cost: 10, groupBuckets: [bucket('former', 100)] }))
      t.match(await other.hold(ask({ id: 'r3', cost: 31, groupBuckets: [named('renamed', 'former')] })), { ok: false, free: 30 })
      t.match(await other.hold(ask({ id: 'r4', cost: 5, groupBuckets: [named('renamed', 'former')] })), { left: { buckets: [25] } })
      await balances.settle({ ...settled, id: 'r2', cost: 8 })
      t.same(await balances.readBucket('renamed', 'chat'), { spent: 70, held: 5 })
      t.same(await balances.readBucket('former', 'chat'), { spent: 8, held: 0 })
      const late = { ...settled, late: ['group'] as const, cost: 1 }
      await balances.settle({ ...late, id: 'r5', lateBuckets: [{ ...named('later', 'former'), scope: 'group' }] })
      t.same(await other.readBucket('later', 'chat'), { spent: 9, held: 0 }, 'by a late settlement, too')
      await balances.settle({ ...late, id: 'r6', lateBuckets: [{ ...named('new', 'none'), scope: 'group' }] })
      t.same(await other.readBucket('new', 'chat'), { spent: 1, held: 0 })
    })

    t.test('that have another name than before do not tell again what they told, also of the amount before', async (t) => {
      await balances.hold(ask({ id: 'f1', cost: 1, groupBuckets: [bucket('told before', 100)] }))
      t.match(await balances.settle({ ...settled, id: 'f1', cost: 60 }), [{ percent: 50 }])
      await other.hold(ask({ id: 'f2', cost: 1, groupBuckets: [bucket('told before', 1_000)] }))
      for (const [id, amount] of [['f3', 1_000], ['f4', 100]] as const) {
        const groupBuckets = [{ ...bucket('told after', amount), formerId: 'told before' }]
        t.notMatch(await other.hold(ask({ id, cost: 1, groupBuckets })), { reached: [{}] })
      }
      await balances.hold(ask({ id: 'f5', cost: 1, groupBuckets: [bucket('same before', 100)] }))
      t.match(await balances.settle({ ...settled, id: 'f5', cost: 60 }), [{ percent: 50 }])
      await other.hold(ask({ id: 'f6', cost: 1, groupBuckets: [{ ...bucket('same after', 100), formerId: 'same before' }] }))
      t.same(await other.settle({ ...settled, id: 'f6', cost: 1 }), [], 'nor where the amount stays as it was')
    })

    t.test('tell it once while a reload goes on, and two processes have two amounts', async (t) => {
      const reached: Reached[] = []
      for (let at = 0; at < 140; at += 1) {
        const [by, amount] = at % 2 === 0 ? [balances, 1_000] : [other, 2_000]
        reached.push(...(await by.hold(ask({ id: `two${at}`, cost: 1, groupBuckets: [bucket('two', amount)] }))).reached ?? [])
        reached.push(...await by.settle({ ...settled, id: `two${at}`, cost: 8 }) ?? [])
      }
      t.same(reached.map(({ percent }) => percent), [50, 80, 100, 50], 'the last one is of the larger amount')
    })

    t.test('spent, held and left are the whole at every moment, and 2,000 at once on one for 50 are 50', async (t) => {
      const groupBuckets = [bucket('whole', 5_000)]
      const decisions = await Promise.all(Array.from({ length: 2_000 }, async (_, at): Promise<Decision> => {
        const decision = await (at % 2 === 0 ? balances : other).hold(ask({ id: `n${at}`, cost: 100, groupBuckets }))
        if (decision.ok && at % 3 === 0) await balances.settle({ ...settled, id: `n${at}`, cost: 100 })
        return decision
      }))
      const left = decisions.flatMap((decision) => decision.ok ? decision.left.buckets ?? [] : [])
      t.equal(left.length, 50)
      t.same(left.sort((a, b) => b - a), Array.from({ length: 50 }, (_, at) => 4_900 - at * 100), 'each sees what is left of the whole')
      const { spent, held } = await balances.readBucket('whole', 'chat')
      t.equal(spent + held, 5_000)
    })

    t.test('spent, held and left are the whole at every sample: asked, settled, left, raised, lowered, taken away', async () => {
      let run = 0
      await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        const id = `sample ${run += 1}`
        const [costs, gone] = [new Map<string, number>(), new Map<string, number>()]
        const sum = (some: Map<string, number>): number => [...some.values()].reduce((all, each) => all + each, 0)
        let amount = 100
        for (const [at, { what, n }] of steps.entries()) {
          const by = at % 2 === 0 ? balances : other
          const [open] = costs.keys()
          if (what === 'hold' || what === 'hold without') {
            const groupBuckets = what === 'hold' ? [bucket(id, amount)] : []
            const decision = await by.hold(ask({ id: `${id}-${at}`, cost: n, costFloor: 1, groupBuckets }))
            const fits = what !== 'hold' || sum(gone) + sum(costs) + Math.max(1, n) <= amount
            equal(decision.ok, fits)
            if (what === 'hold' && decision.ok) {
              costs.set(`${id}-${at}`, n)
              deepStrictEqual(decision.left.buckets, [amount - sum(gone) - sum(costs)])
            }
          } else if (what === 'resize') amount = n + 1
          else if (what === 'settle' && open !== undefined) {
            costs.delete(open)
            gone.set(open, n)
            await by.settle({ ...settled, id: open, cost: n })
          } else if (what === 'expire') {
            clock.now += 10_001
            for (const each of costs.keys()) gone.set(each, 1)
            costs.clear()
          }
          deepStrictEqual(await other.readBucket(id, 'chat'), { spent: sum(gone), held: sum(costs) })
        }
      }), { numRuns: 40 })
    })

    t.test('a share that only the floor of a process that is gone reaches is told by the next settlement', async (t) => {
      const groupBuckets = [bucket('quiet', 100)]
      await balances.hold(ask({ id: 'dead', cost: 70, costFloor: 60, groupBuckets }))
      clock.now += 20_000
      t.same(await other.readBucket('quiet', 'chat'), { spent: 60, held: 0 })
      await balances.hold(ask({ id: 'next', cost: 10, groupBuckets }))
      t.same(await balances.settle({ ...settled, id: 'next', cost: 1 }), [{ scope: 'group', bucket: 'quiet', percent: 50 }])
    })

    t.test('a hold whose process is gone is charged its floor, and put right by whoever settles it', async (t) => {
      const keyBuckets = [bucket('floor', 100)]
      await balances.hold(ask({ id: 'gone', keyLimits: { budgets: [] }, cost: 50, costFloor: 5, keyBuckets }))
      clock.now += 20_000
      t.same(await other.readBucket('floor', 'chat', 'ci'), { spent: 5, held: 0 })
      await other.settle({ ...settled, id: 'gone', cost: 30 })
      t.same(await balances.readBucket('floor', 'chat', 'ci'), { spent: 30, held: 0 })
    })

    t.test('are exact to the last unit, however large', async (t) => {
      const most = 9_000_000_000_000_001
      const all = { group: 'large', key: 'ci', tokens: most, cost: most }
      const groupLimits = { balance: most + 2, budgets: [] }
      const decision = await balances.hold(ask({ ...all, id: 'large', groupLimits, groupBuckets: [bucket('large', most + 1)] }))
      t.match(decision, { ok: true, left: { group: 2, buckets: [1] } })
      t.match(await other.read('large'), { spent: 0, held: most, tokens: most })
      t.same(await other.readBucket('large', 'large'), { spent: 0, held: most })
      await other.settle({ ...all, id: 'large', late: [] })
      t.match(await balances.read('large'), { spent: most, held: 0, tokens: most })
      t.same(await balances.readBucket('large', 'large'), { spent: most, held: 0 })
    })

    t.test('what is charged late counts in the period that it says, once', async (t) => {
      const late = {
        ...settled,
        id: 'late',
        cost: 3,
        late: ['key', 'group'] as const,
        lateBuckets: [{ ...bucket('late', 5), scope: 'key' as const }, { ...bucket('late', 5, 'tokens', null), scope: 'group' as const }],
      }
      for (const by of [balances, other]) await by.settle({ ...late, tokens: 2 })
      t.same(await balances.readBucket('late', 'chat', 'ci'), { spent: 3, held: 0 })
      t.same(await balances.readBucket('late', 'chat'), { spent: 2, held: 0 })
    })

    t.test('two processes at the turn of a period, one behind by two seconds: each request counts in the period in which it ' +
      'was held', async (
      t
    ) => {
      const ends = clock.now + 1_000
      const before = bucket('turn 1', 3_000, 'cost', ends)
      const after = bucket('turn 2', 3_000, 'cost', ends + day)
      const spend = async (by: typeof balances, id: string, groupBuckets: Bucket[]): Promise<boolean> => {
        const decision = await by.hold(ask({ id, cost: 100, groupBuckets }))
        if (decision.ok) await (by === balances ? other : balances).settle({ ...settled, id, cost: 60 })
        return decision.ok
      }
      t.ok((await balances.hold(ask({ id: 'across', cost: 100, groupBuckets: [before] }))).ok)
      clock.now = ends + 500
      const answers = await Promise.all(Array.from(
        { length: 120 },
        async (_, at) => at % 2 === 0 ? await spend(balances, `ahead ${at}`, [after]) : await spend(other, `behind ${at}`, [before])
      ))
      await balances.settle({ ...settled, id: 'across', cost: 70 })
      const served = (from: number): number => answers.filter((ok, at) => ok && at % 2 === from).length
      t.same(await other.readBucket('turn 1', 'chat'), { spent: served(1) * 60 + 70, held: 0 })
      t.same(await balances.readBucket('turn 2', 'chat'), { spent: served(0) * 60, held: 0 })
      t.ok(served(0) >= 30 && served(1) >= 29, `${served(0)} and ${served(1)} were served of a budget for 50 each`)
      const refused = await other.hold(ask({ id: 'too much', cost: 3_001, groupBuckets: [before] }))
      t.ok(!refused.ok && refused.retryAfterMs >= 0, 'a period that is over lets nobody wait for the past')
    })

    t.test('periods of long ago are forgotten when another begins; others are kept', async (t) => {
      await balances.hold(ask({ id: 'old', cost: 1, groupBuckets: [bucket('day 1', 100), bucket('ever', 100, 'cost', null)] }))
      await balances.settle({ ...settled, id: 'old', cost: 9 })
      const lateBuckets = [{ ...bucket('day 1 late', 100), scope: 'group' as const }]
      await balances.settle({ ...settled, id: 'stranger', cost: 2, late: ['group'], lateBuckets })
      t.same(await balances.readBucket('day 1 late', 'chat'), { spent: 2, held: 0 })
      clock.now += 2 * day
      await other.hold(ask({ id: 'next', cost: 1, groupBuckets: [bucket('day 3', 100)] }))
      t.same(await balances.readBucket('day 1', 'chat'), { spent: 9, held: 0 }, 'somebody may settle in it late')
      clock.now += 2 * day
      await other.hold(ask({ id: 'then', cost: 1, groupBuckets: [bucket('day 5', 100)] }))
      for (const id of ['day 1', 'day 1 late']) t.same(await balances.readBucket(id, 'chat'), { spent: 0, held: 0 })
      t.same(await balances.readBucket('ever', 'chat'), { spent: 9, held: 0 })
      await balances.hold(ask({ id: 'long', cost: 5, groupBuckets: [bucket('day 5', 100)] }))
      clock.now += 4 * day
      await balances.renew('chat', ['long'])
      await other.hold(ask({ id: 'last', cost: 1, groupBuckets: [bucket('day 9', 100)] }))
      await balances.settle({ ...settled, id: 'long', cost: 7 })
      t.same(await other.readBucket('day 5', 'chat'), { spent: 0, held: 0 }, 'nor do they come back for who was in one until now')
    })
  })
}
