/** Short runs of what `test/scripts/endurance.ts` does at length. Times are told, not judged: the machine may be busy. */
import t from 'tap'
import { withoutRedis } from '../state/redis/server.js'
import { reconciliation } from './reconciliation.js'
import { storeHang } from './store-hang.js'
import { storeOutage } from './store-outage.js'

// Patient, because the machine may be busy: a Redis that is gone is told by its socket.
const commandTimeoutMs = 1_000

t.test('Redis dies under load: who is known goes on within its leases, the others are told to wait, all is charged', {
  skip: withoutRedis,
}, async (t) => {
  const { violations, ...figures } = await storeOutage({ processes: 2, awayMs: 1_500, everyMs: 40, commandTimeoutMs })
  t.comment(figures)
  t.same(violations, [])
  t.match(figures, { local: { failed: 0 } })
})

t.test('Redis hangs under load: nobody is told a wrong thing, and nothing is charged twice', { skip: withoutRedis }, async (t) => {
  const { violations, ...figures } = await storeHang({ processes: 2, hangsMs: 1_500, everyMs: 40, commandTimeoutMs: 500 })
  t.comment(figures)
  t.same(violations, [])
})

t.test('the ledger and tokens_total agree on whole, cut, refused and abandoned replies', async (t) => {
  const { violations, ...figures } = await reconciliation({ requests: 160, atOnce: 8 })
  t.comment(figures)
  t.same(violations, [])
  for (const ending of ['whole', 'cut', 'left', 'refused']) t.ok(Number(figures[ending]) > 0, ending)
})
