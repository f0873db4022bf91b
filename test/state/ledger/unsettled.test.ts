import { readdirSync, readFileSync, rmSync, statSync, truncateSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { FileLedger } from '../../../plugins/state/ledger/file-ledger.js'
import type { LedgerRecord } from '../../../plugins/state/types.js'
import { idsIn, record, unsettledIn } from './ledger-host.js'

t.test('only what a killed process wrote last may be unsettled', async (t) => {
  const path = t.testdir({})
  const killed = new FileLedger(path)
  await killed.append(record('maybe'))
  const ended = new FileLedger(path)
  await ended.append(record('settled'))
  await ended.close()
  await new FileLedger(path).close()
  const reader = new FileLedger(path)
  t.same(await unsettledIn(reader), ['maybe'])
  await killed.append(record('cut'))
  const file = readdirSync(path).map((name) => join(path, name)).find((name) => readFileSync(name, 'utf8').includes('maybe'))
  truncateSync(String(file), statSync(String(file)).size - 5)
  t.same(await unsettledIn(reader), ['maybe'])
  utimesSync(String(file), 1, 1)
  t.same(await unsettledIn(reader), [], 'not after a day')
  await killed.close()
})

t.test('of a process that ended well no file is looked at again, however many it filled', async (t) => {
  const path = t.testdir({})
  const ended = new FileLedger(path, { maxFileBytes: 1 })
  for (const id of ['a', 'b', 'c', 'd']) await ended.append(record(id))
  const names = readdirSync(path).sort()
  t.equal(names.length, 4)
  t.same(await unsettledIn(ended), ['a', 'b', 'c', 'd'], 'until its end any of them may be unsettled')
  rmSync(join(path, String(names[0])))
  await ended.close()
  t.same(await unsettledIn(new FileLedger(path)), [])
  t.same(readdirSync(path).sort(), names.slice(1), 'a file that went meanwhile does not come back')
  t.same(await idsIn(new FileLedger(path), { onDamage: (at) => t.fail(`${at} has its end, and no damage`) }), ['b', 'c', 'd'])

  const left = new FileLedger(path, { maxFileBytes: 1 })
  for (const id of ['e', 'f']) await left.append(record(id))
  left.noteUnsettled()
  await left.close()
  t.same(await unsettledIn(new FileLedger(path)), ['e', 'f'], 'all of them where it could not settle')
})

t.test('all that may have waited for a store is looked at again', async (t) => {
  const path = t.testdir({})
  const killed = new FileLedger(path)
  const long = (id: string): LedgerRecord => ({ ...record(id), labels: { team: 'x'.repeat(1_000) } })
  const ids = Array.from({ length: 10_000 }, (_, at) => `r${at}`)
  await Promise.all(ids.map(async (id) => await killed.append(long(id))))
  t.same(await unsettledIn(new FileLedger(path)), ids)
  await killed.close()
})

t.test('a record of long ago is not charged again because a newer one stands behind it', async (t) => {
  const path = t.testdir({})
  const killed = new FileLedger(path)
  const day = 24 * 60 * 60_000
  await killed.append(record('old', Date.now() - day - 1_000))
  await killed.append(record('new', Date.now() - day + 60_000))
  t.same(await unsettledIn(new FileLedger(path)), ['new'])
  await killed.close()
})
