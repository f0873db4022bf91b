import { readdirSync, readFileSync, statSync, truncateSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { FileLedger } from '../../../plugins/state/ledger/file-ledger.js'
import { idsIn, record } from './ledger-host.js'

t.test('a line that a crash cut off is passed over, and told', async (t) => {
  const path = t.testdir({})
  const ledger = new FileLedger(path)
  await ledger.append(record('whole'))
  await ledger.append(record('cut'))
  const file = join(path, String(readdirSync(path)[0]))
  truncateSync(file, statSync(file).size - 5)
  const damaged: string[] = []
  t.same(await idsIn(ledger, { onDamage: (at) => damaged.push(at) }), ['whole'])
  t.same(damaged, [file])
  t.same(await idsIn(ledger), ['whole'])
  await ledger.close()
})

t.test('a file ends by size and by age, and goes when it is old', async (t) => {
  const path = t.testdir({})
  let now = Date.now()
  const ledger = new FileLedger(path, { maxFileBytes: 400, maxFileAgeMs: 60_000, keepMs: 3_600_000 }, () => now)
  for (const id of ['a', 'b', 'c']) await ledger.append(record(id))
  t.equal(readdirSync(path).length, 2, 'two records reach the size')
  now += 60_000
  await ledger.append(record('d'))
  const names = readdirSync(path).sort()
  t.equal(names.length, 3)
  t.same(await idsIn(ledger), ['a', 'b', 'c', 'd'])
  t.same(await idsIn(ledger, { from: Date.now() + 1e9 }), [], 'whole files are passed over')
  utimesSync(join(path, String(names[0])), 1, 1)
  now += 60_000
  await ledger.append(record('e'))
  t.same(await idsIn(ledger), ['c', 'd', 'e'])
  await ledger.close()
})

t.test('a file that is written all the time ends when its first records are too old, and goes; others in its folder stay', async (t) => {
  const path = t.testdir({ 'refused.jsonl': '{}\n' })
  utimesSync(join(path, 'refused.jsonl'), 1, 1)
  let now = Date.now()
  const ledger = new FileLedger(path, { keepMs: 3_600_000 }, () => now)
  await ledger.append(record('a'))
  now += 3_700_000
  await ledger.append(record('b'))
  t.same(await idsIn(ledger, { onDamage: (at) => t.fail(`${at} is no ledger`) }), ['b'])
  t.equal(readFileSync(join(path, 'refused.jsonl'), 'utf8'), '{}\n')
  await ledger.close()
})

t.test('an old file that cannot be deleted keeps no record from the disk', async (t) => {
  // For rm() a folder is what a file that the system lets nobody delete is.
  const path = t.testdir({ '000000000000001-1-0badc0de.ledger': {} })
  const old = join(path, '000000000000001-1-0badc0de.ledger')
  utimesSync(old, 1, 1)
  const ledger = new FileLedger(path, { keepMs: 60_000 })
  await ledger.append(record('a'))
  t.equal(readdirSync(path).length, 2)
  await ledger.close()
})

t.test('nothing is written to a file that others may have deleted meanwhile, as too old', async (t) => {
  const path = t.testdir({})
  let now = Date.now()
  const [idle, busy] = [new FileLedger(path, { keepMs: 60_000 }, () => now), new FileLedger(path, { keepMs: 60_000 }, () => now)]
  await idle.append(record('a'))
  for (const name of readdirSync(path)) utimesSync(join(path, name), 1, 1)
  now += 60_000
  await busy.append(record('b'))
  t.same(await idsIn(busy), ['b'])
  await idle.append(record('c'))
  t.same(await idsIn(busy), ['b', 'c'])
  await Promise.all([idle.close(), busy.close()])
})

t.test('a clock that is set back puts no record into a file that begins later', async (t) => {
  const ledger = new FileLedger(t.testdir({}))
  const now = Date.now()
  await ledger.append(record('a', now))
  await ledger.append(record('b', now - 3_600_000))
  await Promise.all([record('c', now - 60_000), record('d', now - 7_200_000)].map(async (each) => await ledger.append(each)))
  t.same(await idsIn(ledger, { to: now - 60_000 }), ['d', 'b'])
  t.same(await idsIn(ledger, { to: now - 3_600_000 }), ['d'])
  await ledger.close()
  const other = new FileLedger(t.testdir({}))
  for (const [id, time] of [['later', now], ['half a minute back', now - 30_000]] as const) await other.append(record(id, time))
  t.same(await idsIn(other, { to: now }), ['half a minute back'])
  await other.close()
})

t.test('a clock that is set back in small steps makes no file older than its records', async (t) => {
  const path = t.testdir({})
  const ledger = new FileLedger(path)
  const now = Date.now()
  for (const [id, time] of [['early', -120_000], ['first', 0], ['second', -40_000], ['third', -80_000]] as const) {
    await ledger.append(record(id, now + time))
    // As the clock of then makes it.
    for (const name of readdirSync(path).slice(-1)) utimesSync(join(path, name), 1, (now + time) / 1_000)
  }
  await ledger.close()
  t.same(await idsIn(ledger, { from: now - 10_000 }), ['first'])
})

t.test('what was written while the clock was ahead is found by its time after it was set back', async (t) => {
  const path = t.testdir({})
  const ledger = new FileLedger(path)
  const now = Date.now()
  const ahead = now + 3_600_000
  await ledger.append(record('before', now))
  await ledger.append(record('ahead', ahead))
  // As the clock of then made it.
  for (const name of readdirSync(path)) utimesSync(join(path, name), ahead / 1_000, ahead / 1_000)
  await ledger.append(record('after', now + 1))
  await ledger.append(record('later', now + 1))
  t.equal(readdirSync(path).length, 2, 'and begins one file more')
  await ledger.close()
  t.same(await idsIn(ledger, { from: now + 1_800_000 }), ['ahead'])
})

t.test('a clock that is set back between records of one write begins one file more, too', async (t) => {
  const path = t.testdir({})
  const ledger = new FileLedger(path)
  const now = Date.now()
  await Promise.all([record('ahead', now + 3_600_000), record('back', now)].map(async (each) => await ledger.append(each)))
  await ledger.append(record('after', now + 1))
  t.equal(readdirSync(path).length, 2)
  await ledger.close()
})
