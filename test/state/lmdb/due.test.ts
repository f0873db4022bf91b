/** When holds in lmdb are due: for each process by its own time to live, and as they are at that moment. */
import t from 'tap'
import { lmdbBalances } from '../../../plugins/state/lmdb/balances.js'
import { openLmdb } from '../../../plugins/state/lmdb/open.js'
import type { HoldAsk } from '../../../plugins/state/types.js'

const hourMs = 60 * 60_000

function ask (id: string): HoldAsk {
  return { group: 'chat', groupLimits: { concurrency: 1 }, key: 'ci', keyLimits: {}, id, requests: 1, tokens: 5, floor: 1 }
}

t.test('what is renewed in a turn is not due in it', async (t) => {
  const files = await openLmdb(t.testdir({}), 'boot-1')
  let now = 1_700_000_000_000
  const balances = lmdbBalances(files, { holdTtlMs: 1_000, now: () => now })
  await balances.hold(ask('a'))
  now += 1_000
  await Promise.all([balances.renew('chat', ['a']), balances.read('chat')])
  t.match(await balances.read('chat'), { held: 5, active: 1 })
  await balances.close()
  await files.close()
})

t.test('a time to live of more than an hour ends, too', async (t) => {
  const files = await openLmdb(t.testdir({}), 'boot-1')
  let now = 1_700_000_000_000
  const balances = lmdbBalances(files, { holdTtlMs: 2 * hourMs, now: () => now })
  await balances.hold(ask('killed'))
  now += hourMs / 2
  t.match(await balances.hold(ask('a')), { ok: false })
  now += 1.5 * hourMs
  t.match(await balances.hold(ask('b')), { ok: true })
  await balances.close()
  await files.close()
})

t.test('a process whose time to live is shorter cuts none of another one\'s', async (t) => {
  const files = await openLmdb(t.testdir({}), 'boot-1')
  let now = 1_700_000_000_000
  const [long, short] = [hourMs / 2, 1_000].map((holdTtlMs) => lmdbBalances(files, { holdTtlMs, now: () => now }))
  await long?.hold(ask('a'))
  for (let times = 0; times < 3; times += 1) {
    t.match(await short?.hold(ask('b')), { ok: false })
    now += 2_000
  }
  await long?.close()
  await short?.close()
  await files.close()
})
