import t from 'tap'
import { newWindow } from '../../../plugins/core/balances/window.js'
import type { HoldRecord } from '../../../plugins/core/balances/group-store.js'
import { LmdbGroupStores } from '../../../plugins/state/lmdb/group-stores.js'
import { LmdbHolds } from '../../../plugins/state/lmdb/holds.js'
import { GroupNames } from '../../../plugins/state/lmdb/names.js'
import { openLmdb } from '../../../plugins/state/lmdb/open.js'

const hold: HoldRecord = {
  id: 'a',
  group: 'chat',
  key: 'ci',
  scopes: ['group'],
  balances: [],
  buckets: [],
  tokens: 5,
  cost: 0,
  floor: 1,
  costFloor: 0,
  active: 1,
  second: 1,
  deadline: 2,
  state: 'open',
}

t.test('memory has what is open alone, and a turn tells whether it wrote', async (t) => {
  const files = await openLmdb(t.testdir({}), 'boot-1')
  const holds = new LmdbHolds(files.tables.holds)
  const names = new GroupNames('chat', 9)
  const turn = (before: HoldRecord | undefined, now: HoldRecord | null): boolean => files.writeBalances(() => {
    holds.change(names, 'a', now, before)
    return holds.end()
  })
  t.equal(files.writeBalances(() => holds.end()), false)
  t.equal(turn(undefined, hold), true)
  t.equal(files.writeBalances(() => holds.end()), false)
  t.equal(holds.known(names, 'a'), hold)
  const closed: HoldRecord = { ...hold, state: 'closed' }
  t.equal(turn(hold, closed), true)
  t.equal(holds.known(names, 'a'), undefined)
  turn(closed, null)
  t.equal(holds.known(names, 'a'), undefined)
  t.equal(holds.read(names, 'a', { open: true, closed: true }), undefined)
  await files.close()
})

t.test('a process that only looks leaves the memory of others as it is', async (t) => {
  const files = await openLmdb(t.testdir({}), 'boot-1')
  const [one, other] = [1, 2].map(() => new LmdbGroupStores(files.tables, { add: () => {} }, 1_000))
  const turn = (stores: LmdbGroupStores | undefined, work: () => void): void => files.writeBalances(() => {
    stores?.begin()
    work()
    stores?.end()
  })
  const account = { spent: 1, held: 2, active: 1, window: newWindow() }
  turn(one, () => one?.of('chat').saveAccount(null, account))
  turn(other, () => other?.of('chat').account(null))
  turn(one, () => t.equal(one?.of('chat').account(null), account))
  turn(other, () => other?.of('chat').saveAccount(null, { ...account, spent: 3 }))
  turn(one, () => t.match(one?.of('chat').account(null), { spent: 3 }))
  await files.close()
})
