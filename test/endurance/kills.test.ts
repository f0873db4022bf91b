/** Short runs of what `test/scripts/endurance.ts` does at length. Times are told, not judged: the machine may be busy. */
import t from 'tap'
import { startPostgres, withoutPostgres } from '../state/postgres-server.js'
import { startRedis, withoutRedis } from '../state/redis/server.js'
import { budgetKills } from './budget-kills.js'
import { fiftyCalls } from './fifty-calls.js'
import { ledgerKills } from './ledger-kills.js'
import { lmdbKills } from './lmdb-kills.js'

for (const [engine, skip] of [['redis', withoutRedis], ['lmdb', false]] as const) {
  t.test(`a balance for 20 calls serves 20 of 240 at once, over 3 processes with ${engine}`, { skip }, async (t) => {
    const { violations, ...figures } = await fiftyCalls({ engine, calls: 20, requests: 240, processes: 3 })
    t.comment(figures)
    t.same(violations, [])
    t.match(figures, { served: 20, refused: 220 })
  })
}

for (const [engine, skip] of [['redis', withoutRedis], ['lmdb', false]] as const) {
  t.test(`kill -9 of processes that spend a budget leaves spent, held and left its whole, with ${engine}`, { skip }, async (t) => {
    const server = engine === 'redis' ? await startRedis() : null
    t.teardown(async () => await server?.stop())
    const { violations, ...figures } = await budgetKills({ rounds: 3, ...server !== null && { url: server.url } })
    t.comment(figures)
    t.same(violations, [])
    t.ok(Number(figures.settled) > 0 && Number(figures.openAtTheEnd) > 0)
  })
}

t.test('kill -9 in the middle of requests loses no acknowledged record, and makes none twice, nor in the usage store', async (t) => {
  const postgres = withoutPostgres === false ? await startPostgres() : undefined
  t.teardown(async () => await postgres?.stop())
  const { violations, ...figures } = await ledgerKills({ rounds: 2, requests: 400, holdTtlMs: 1_500, postgres })
  t.comment(figures)
  t.same(violations, [])
  t.match(figures, { lost: 0 })
})

t.test('kill -9 of two processes on one lmdb loses nothing that was acknowledged', async (t) => {
  const { violations, ...figures } = await lmdbKills({ kills: 12 })
  t.comment(figures)
  t.same(violations, [])
  t.ok(Number(figures.settled) > 0)
})
