/** What stays of balances in lmdb when a step cannot be written, or its process ends. */
import { randomBytes } from 'node:crypto'
import { lstatSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { open } from 'lmdb'
import t from 'tap'
import { lmdbBalances } from '../../../plugins/state/lmdb/balances.js'
import { DurableThread, saveEntries, type Entries } from '../../../plugins/state/lmdb/durable.js'
import { openLmdb } from '../../../plugins/state/lmdb/open.js'
import type { HoldAsk } from '../../../plugins/state/types.js'

const parties = { group: 'chat', groupLimits: { balance: 1_000 }, key: 'ci', keyLimits: {} }

function ask (id: string, tokens: number, floor = 0): HoldAsk {
  return { ...parties, id, requests: 1, tokens, floor }
}

for (const which of ['a write of it', 'its end']) {
  t.test(`of a turn that fails at ${which} nothing is known in the next one, nor written`, async (t) => {
    const files = await openLmdb(t.testdir({}), 'boot-1')
    let isFull = false
    const fail = (): void => { if (isFull) throw new Error('the disk is full') }
    const writeBalances: typeof files.writeBalances = (step) => files.writeBalances(() => {
      const done = step()
      fail()
      return done
    })
    const accounts = new Proxy(files.tables.accounts, {
      get: (table, name) => {
        if (name === 'putSync') fail()
        return Reflect.get(table, name).bind(table)
      },
    })
    const parts = which === 'its end' ? { writeBalances } : { tables: { ...files.tables, accounts } }
    const balances = lmdbBalances({ ...files, ...parts }, { holdTtlMs: 60_000 })
    await balances.hold(ask('a', 5))
    isFull = true
    await t.rejects(async () => await balances.hold(ask('b', 7)), { message: 'the disk is full' })
    isFull = false
    t.match(await balances.read('chat'), { held: 5, active: 1 })
    await balances.settle({ id: 'b', group: 'chat', key: 'ci', tokens: 3, late: [] })
    const other = lmdbBalances(files, { holdTtlMs: 60_000 })
    for (const each of [balances, other]) t.match(await each.read('chat'), { spent: 0, held: 5, active: 1 })
    await other.close()
    await balances.close()
    await files.close()
  })
}

t.test('a budget that a refused request changed is changed for other processes', async (t) => {
  const files = await openLmdb(t.testdir({}), 'boot-1')
  const [one, other] = [lmdbBalances(files, { holdTtlMs: 60_000 }), lmdbBalances(files, { holdTtlMs: 60_000 })]
  const budget = (amount: number): Partial<HoldAsk> => ({ groupBuckets: [{ id: 'total', unit: 'tokens', amount, endsAt: null }] })
  await one.hold({ ...ask('a', 60), ...budget(100) })
  await one.settle({ id: 'a', group: 'chat', key: 'ci', tokens: 60, late: [] })
  // So that it wrote last, and knows the budget as it was.
  t.match(await other.hold({ ...ask('c', 1), ...budget(100) }), { ok: true })
  t.match(await one.hold({ ...ask('b', 1), ...budget(55) }), { ok: false, reached: [{}] })
  const { reached } = await other.hold({ ...ask('d', 1), ...budget(55) })
  t.equal(reached, undefined, 'what it reaches by that is told once')
  for (const each of [one, other]) await each.close()
  await files.close()
})

t.test('a settlement that waits when its process ends is in, and on the disk', async (t) => {
  const path = t.testdir({})
  const files = await openLmdb(path, 'boot-1')
  const balances = lmdbBalances(files, { holdTtlMs: 60_000 })
  await balances.hold(ask('a', 10))
  const settled = balances.settle({ id: 'a', group: 'chat', key: 'ci', tokens: 4, late: [] })
  await balances.close()
  await settled
  await files.close()
  const restored = await openLmdb(path, 'boot-2')
  t.equal(restored.spent.get('g:chat'), 4)
  await restored.close()
})

t.test('what is given back later is given back on the disk', async (t) => {
  const path = t.testdir({})
  const files = await openLmdb(path, 'boot-1')
  const balances = lmdbBalances(files, { holdTtlMs: 60_000, checkpointMs: 5 })
  const bucket = { id: 'day', unit: 'tokens' as const, amount: 1_000, endsAt: null, scope: 'group' as const }
  const settle = async (id: string, tokens: number): Promise<void> => {
    await balances.settle({ id, group: 'chat', key: 'ci', tokens, late: ['group'], lateBuckets: [bucket] })
  }
  await settle('a', 500)
  while (files.transaction(() => files.spent.get('g:chat')) !== 500) await new Promise((resolve) => setTimeout(resolve, 5))
  await settle('a:told', -490)
  await balances.close()
  await files.close()
  const restored = await openLmdb(path, 'boot-2')
  const again = lmdbBalances(restored, { holdTtlMs: 60_000 })
  t.match([await again.read('chat'), await again.readBucket('day', 'chat')], [{ spent: 10 }, { spent: 10 }])
  await again.close()
  await restored.close()
})

t.test('what is being saved when its process ends does not replace what is newer', async (t) => {
  const path = t.testdir({})
  const files = await openLmdb(path, 'boot-1')
  const held = { entries: 0, release: (): void => {} }
  const released = new Promise<void>((resolve) => { held.release = resolve })
  class SlowThread extends DurableThread {
    override async save (entries: Entries): Promise<boolean> {
      held.entries = entries.length
      await released
      return saveEntries(files, entries)
    }
  }
  let now = 1_700_000_000_000
  const options = { holdTtlMs: 1_000, checkpointMs: 5, now: () => now }
  const balances = lmdbBalances({ ...files, thread: new SlowThread(path) }, options)
  await balances.hold(ask('slow', 200, 100))
  now += 2_000
  await balances.read('chat')
  await balances.settle({ id: 'slow', group: 'chat', key: 'ci', tokens: 7, late: [] })
  while (held.entries === 0) await new Promise(setImmediate)
  await balances.hold(ask('next', 5))
  await balances.settle({ id: 'next', group: 'chat', key: 'ci', tokens: 5, late: [] })
  const closed = balances.close()
  await new Promise(setImmediate)
  held.release()
  await closed
  t.equal(files.transaction(() => files.spent.get('g:chat')), 12)
  await files.close()
})

const harms = {
  deleted: rmSync,
  damaged: (file: string) => { writeFileSync(file, Buffer.alloc(50_000)) },
  'made anew by a process that was killed at once': async (file: string) => {
    rmSync(file)
    await open({ path: file, overlappingSync: false, maxDbs: 4 }).close()
  },
}
for (const [how, harm] of Object.entries(harms)) {
  t.test(`where the file of limits was ${how}, what is spent is what the other one knows`, async (t) => {
    const path = t.testdir({})
    const files = await openLmdb(path, 'boot-1')
    const balances = lmdbBalances(files, { holdTtlMs: 60_000 })
    await balances.hold(ask('a', 10))
    await balances.settle({ id: 'a', group: 'chat', key: 'ci', tokens: 4, late: [] })
    await balances.close()
    await files.close()
    await harm(join(path, 'limits.mdb'))
    const again = await openLmdb(path, 'boot-1')
    const restored = lmdbBalances(again, { holdTtlMs: 60_000 })
    t.match(await restored.read('chat'), { spent: 4, held: 0 })
    await restored.close()
    await again.close()
  })
}

t.test('a damaged file of keys is told, and does not end the process; one without a byte is made anew', async (t) => {
  const damaged = { zeros: Buffer.alloc(100_000), short: Buffer.from('a'), random: randomBytes(10_000) }
  const folders = Object.entries({ ...damaged, empty: '' }).map(([name, bytes]) => [name, { 'keys.mdb': bytes }])
  const path = t.testdir(Object.fromEntries(folders))
  for (const name of Object.keys(damaged)) await t.rejects(openLmdb(join(path, name), 'boot-1'), /\/\w+ of the state .* keys\.mdb is damaged/, name)
  const files = await openLmdb(join(path, 'empty'), 'boot-1')
  await files.close()
})

t.test('a damaged lock is told, too, by the file to delete', async (t) => {
  for (const name of ['keys.mdb.gate', 'limits.mdb.gate']) {
    const path = t.testdir({ [name]: Buffer.alloc(8_192) })
    await t.rejects(openLmdb(path, 'boot-1'), new RegExp(`/${name.replaceAll('.', '\\.')} is damaged: delete it`))
  }
})

t.test('a file of limits that is there and cannot be read is not made again: it may be in use', async (t) => {
  const path = t.testdir({})
  const file = join(path, 'limits.mdb')
  await (await openLmdb(path, 'boot-1')).close()
  rmSync(file)
  // As a file of another user, which root could read.
  symlinkSync('limits.mdb', file)
  await t.rejects(openLmdb(path, 'boot-1'), { code: 'ELOOP' })
  t.ok(lstatSync(file).isSymbolicLink())
})
