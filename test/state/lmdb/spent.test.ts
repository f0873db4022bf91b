/** What is noted for after a power failure, and that nobody waits for it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import type { Bucket, HoldAsk } from '../../../plugins/core/balances/types.js'
import { newWindow } from '../../../plugins/core/balances/window.js'
import { lmdbBalances } from '../../../plugins/state/lmdb/balances.js'
import { writeAccount } from '../../../plugins/state/lmdb/codec.js'
import { DurableThread } from '../../../plugins/state/lmdb/durable.js'
import { openLmdb } from '../../../plugins/state/lmdb/open.js'
import { SpentChanges, spentOf, SpentWriter } from '../../../plugins/state/lmdb/spent.js'

const heldMs = 2_000

/** Has the file's one write lock for a while, as a process does that waits for a disk. */
const holder = `
  import { open } from 'lmdb'
  const durable = open({ path: process.argv[1] + '/keys.mdb', overlappingSync: false, maxDbs: 8 })
  durable.transactionSync(() => {
    process.stdout.write('held')
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ${heldMs})
  })
  await durable.close()`

t.test('a disk that stands still holds up no request', async (t) => {
  const path = t.testdir({})
  const files = await openLmdb(path, 'boot-1')
  const balances = lmdbBalances(files, { holdTtlMs: 60_000, checkpointMs: 20 })
  const args = ['-i', `PATH=${process.env['PATH']}`, process.execPath, '--input-type=module', '--eval', holder, path]
  const other = spawn('/usr/bin/env', args, { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => other.kill('SIGKILL'))
  await once(other.stdout, 'data')
  let longest = 0
  for (let id = 0; other.exitCode === null; id += 1) {
    const at = performance.now()
    const ask: HoldAsk = {
      group: 'chat', groupLimits: { balance: 1e9 }, key: 'ci', keyLimits: {}, id: String(id), requests: 1, tokens: 1, floor: 0,
    }
    await balances.hold(ask)
    await balances.settle({ id: String(id), group: 'chat', key: 'ci', tokens: 1, late: [] })
    await pause(10)
    longest = Math.max(longest, performance.now() - at)
  }
  t.ok(longest < heldMs / 2, `the longest took ${Math.round(longest)} ms`)
  while (files.spent.get('g:chat') === undefined) await pause(10)
  await balances.close()
  // Within a transaction: what was read a moment ago, before the thread wrote, is read the same for a millisecond.
  t.equal(files.transaction(() => files.spent.get('g:chat')), (await openAgain()).spent, 'all of it at the end')

  async function openAgain (): Promise<{ readonly spent: number }> {
    const again = lmdbBalances(files, { holdTtlMs: 60_000 })
    const read = await again.read('chat')
    await again.close()
    return read
  }
  await files.close()
})

t.test('what a thread that ends has not saved stays to be saved', async (t) => {
  const changes = new SpentChanges(() => () => 7)
  changes.add('g:chat')
  changes.add('g:other', true)
  const thread = new DurableThread('/dev/null/nowhere')
  const writer = new SpentWriter(thread, changes)
  writer.write()
  writer.write()
  await writer.close()
  await thread.close()
  t.strictSame(changes.take(), [['spent', 'g:chat', 7, false], ['spent', 'g:other', 7, true]])
})

t.test('what a thread that cannot begin has not saved stays to be saved, and ends nothing', async (t) => {
  const changes = new SpentChanges(() => () => 7)
  changes.add('g:chat', true)
  const writer = new SpentWriter({ save: async () => { throw new Error('no more threads') } }, changes)
  writer.write()
  await writer.close()
  t.strictSame(changes.take(), [['spent', 'g:chat', 7, true]])
})

t.test('while a disk stands still, no other writes queue behind it', async (t) => {
  const changes = new SpentChanges(() => () => 7)
  const saved: unknown[] = []
  let end = (): void => {}
  const save = async (entries: unknown): Promise<boolean> => {
    saved.push(entries)
    return await new Promise((resolve) => { end = () => resolve(true) })
  }
  const writer = new SpentWriter({ save }, changes)
  const write = (name: string): void => {
    changes.add(name)
    writer.write()
  }
  for (const name of ['a', 'b', 'c']) write(name)
  t.strictSame(saved, [[['spent', 'a', 7, false]]])
  end()
  await writer.close()
  write('d')
  end()
  await writer.close()
  t.strictSame(saved[1], ['b', 'c', 'd'].map((name) => ['spent', name, 7, false]))
})

t.test('where nothing changes, no thread begins', async (t) => {
  const writer = new SpentWriter({ save: async () => t.fail('nothing to save') }, new SpentChanges(() => () => 7))
  writer.write()
  await writer.close()
})

t.test('what cannot be read stays to be saved, and ends nothing', async (t) => {
  let isBroken = true
  const changes = new SpentChanges(() => () => {
    if (isBroken) throw new Error('a closed database')
    return 7
  })
  changes.add('g:chat', true)
  const writer = new SpentWriter(new DurableThread('/dev/null/nowhere'), changes)
  writer.write()
  await writer.close()
  isBroken = false
  t.strictSame(changes.take(), [['spent', 'g:chat', 7, true]])
})

t.test('what changes while it is written is written again, and what does not is not', async (t) => {
  const path = t.testdir({})
  const files = await openLmdb(path, 'boot-1')
  const spent = new Map([['g:chat', 7], ['g:other', 1]])
  const changes = new SpentChanges(() => (name) => spent.get(name) ?? null)
  for (const name of spent.keys()) changes.add(name)
  const writer = new SpentWriter(files.thread, changes)
  writer.write()
  spent.set('g:chat', 8)
  changes.add('g:chat')
  while (files.spent.get('g:other') !== 1) await pause(10)
  await writer.close()
  t.equal(changes.size, 1)
  writer.write()
  await writer.close()
  t.equal(changes.size, 0)
  t.equal(files.transaction(() => files.spent.get('g:chat')), 8)
  await files.close()
})

t.test('a value that puts a charge right replaces a greater one until it is saved, and no later one does', async (t) => {
  const changes = new SpentChanges(() => () => 7)
  changes.add('g:chat', true)
  changes.add('g:chat')
  const entries = changes.take()
  t.strictSame(entries, [['spent', 'g:chat', 7, true]])
  changes.putBack(entries, true)
  t.equal(changes.size, 0)
  changes.add('g:chat')
  t.strictSame(changes.take(), [['spent', 'g:chat', 7, false]])
})

t.test('one that may have replaced what another process saved is saved again', async (t) => {
  let now = 7
  const changes = new SpentChanges(() => () => now)
  changes.add('g:chat', true)
  changes.add('g:other')
  const entries = changes.take()
  now = 9
  changes.putBack(entries, true)
  t.strictSame(changes.take(), [['spent', 'g:chat', 9, false]])
})

t.test('what is spent is read as it is, also right after it was read', async (t) => {
  const path = t.testdir({})
  const [files, others] = [await openLmdb(path, 'boot-1'), await openLmdb(path, 'boot-1')]
  for (const spent of [7, 9]) {
    const account = writeAccount({ spent, held: 0, active: 0, window: newWindow() })
    others.writeBalances(() => { others.tables.accounts.putSync('g:chat', account) })
    t.equal(spentOf(files.tables)('g:chat'), spent)
  }
  await files.close()
  await others.close()
})

t.test('what one process puts right takes nothing from what another one has charged since', async (t) => {
  const path = t.testdir({})
  const [files, others] = [await openLmdb(path, 'boot-1'), await openLmdb(path, 'boot-1')]
  const budget: Bucket = { id: 'tokens total UTC ', unit: 'tokens', amount: 1e9, endsAt: null }
  const parties = { group: 'chat', groupLimits: { balance: 1e9 }, groupBuckets: [budget], key: 'ci', keyLimits: {} }
  const late = { late: ['group' as const], lateBuckets: [{ ...budget, scope: 'group' as const }] }
  const [one, two] = [files, others].map((each, at) => lmdbBalances(each, { holdTtlMs: 60_000, checkpointMs: at === 0 ? 1e9 : 20 }))
  if (one === undefined || two === undefined) throw new Error('two were opened')
  await one.hold({ ...parties, id: 'made', requests: 1, tokens: 100, floor: 1 })
  await one.settle({ id: 'made', group: 'chat', key: 'ci', tokens: 100, late: [] })
  await one.settle({ id: 'made:told', group: 'chat', key: 'ci', tokens: -90, ...late })
  await two.hold({ ...parties, id: 'next', requests: 1, tokens: 50, floor: 1 })
  await two.settle({ id: 'next', group: 'chat', key: 'ci', tokens: 50, late: [] })
  while (files.spent.get('g:chat') !== 60) await pause(10)
  await one.close()
  await two.close()
  await files.close()
  await others.close()

  const again = await openLmdb(path, 'boot-2')
  const restored = lmdbBalances(again, { holdTtlMs: 60_000 })
  t.equal((await restored.read('chat')).spent, 60)
  t.equal((await restored.readBucket(budget.id, 'chat')).spent, 60)
  await restored.close()
  await again.close()
})

for (const used of [7, 0]) {
  t.test(`what was charged too much and put right at ${used} stays right beyond a power failure`, async (t) => {
    const path = t.testdir({})
    let now = Date.now()
    const files = await openLmdb(path, 'boot-1')
    const balances = lmdbBalances(files, { now: () => now, holdTtlMs: 1_000, checkpointMs: 20 })
    const budget: Bucket = { id: 'tokens total UTC ', unit: 'tokens', amount: 1e9, endsAt: null }
    const parties = { group: 'chat', groupLimits: { balance: 1e9 }, groupBuckets: [budget], key: 'ci', keyLimits: {} }
    await balances.hold({ ...parties, id: 'slow', requests: 1, tokens: 200, floor: 100 })
    now += 2_000
    await balances.read('chat')
    while (files.spent.get('g:chat') !== 100) await pause(10)
    await balances.settle({ id: 'slow', group: 'chat', key: 'ci', tokens: used, late: [] })
    while (files.spent.get('g:chat') !== used) await pause(10)
    await balances.close()
    await files.close()

    const again = await openLmdb(path, 'boot-2')
    const restored = lmdbBalances(again, { now: () => now, holdTtlMs: 1_000 })
    t.equal((await restored.read('chat')).spent, used)
    t.equal((await restored.readBucket(budget.id, 'chat')).spent, used)
    await restored.close()
    await again.close()
  })
}
