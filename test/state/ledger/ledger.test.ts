import { readdirSync, statSync, truncateSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t, { type Test } from 'tap'
import { FileLedger } from '../../../plugins/state/ledger/file-ledger.js'
import { memoryLedger } from '../../../plugins/state/ledger/memory-ledger.js'
import { idsIn, record, unsettledIn } from './ledger-host.js'

for (const [name, openLedger] of [
  ['files', (t: Test) => new FileLedger(join(t.testdir({}), 'ledger'))],
  ['memory', () => memoryLedger()],
] as const) {
  t.test(`a ledger in ${name} gives back what was appended, by time`, async (t) => {
    const ledger = openLedger(t)
    const now = Date.now()
    await Promise.all([0, 1, 2].map(async (i) => await ledger.append(record(`r${i}`, now + i))))
    await ledger.flush()
    t.same(await idsIn(ledger), ['r0', 'r1', 'r2'])
    t.same(await idsIn(ledger, { from: now + 1 }), ['r1', 'r2'])
    t.same(await idsIn(ledger, { from: now, to: now + 1 }), ['r0'])
    const seen: number[] = []
    await idsIn(ledger, { onProgress: (done, total) => seen.push(done / total) })
    t.equal(seen.at(-1), 1)
    await ledger.close()
  })
}

t.test('a file that began after a range, or ended more than a minute before it, is not opened', async (t) => {
  // A folder, which cannot be read.
  const path = t.testdir({ '000000000900000-1-0badc0de.ledger': {} })
  utimesSync(join(path, '000000000900000-1-0badc0de.ledger'), 1_000, 1_000)
  const ledger = new FileLedger(path)
  for (const range of [{ to: 900_000 }, { from: 1_060_001 }]) t.same(await idsIn(ledger, range), [])
  for (const range of [{ to: 900_001 }, { from: 1_060_000 }, {}]) await t.rejects(idsIn(ledger, range), { code: 'EISDIR' })
  await ledger.close()
})

t.test('how far a ledger is read is told in bytes of its files, and never as more than all', async (t) => {
  const path = t.testdir({})
  const ledger = new FileLedger(path, { maxFileBytes: 1 })
  const now = Date.now()
  for (const [at, id] of ['ü', 'b', 'c'].entries()) await ledger.append(record(id, now + at))
  const sizes = readdirSync(path).sort().map((name) => statSync(join(path, name)).size)
  const [one = 0, two = 0, three = 0] = sizes
  truncateSync(join(path, String(readdirSync(path).sort()[2])), three - 1)
  const told: number[][] = []
  t.same(await idsIn(ledger, { onProgress: (...each) => told.push(each) }), ['ü', 'b', 'c'])
  const total = one + two + three - 1
  t.same(told.slice(0, 2), [[one, total], [one + two, total]])
  t.same(told.at(-1), [total, total])
  await ledger.close()
})

t.test('a letter of several bytes is one wherever a file is read in two pieces', async (t) => {
  const path = t.testdir({})
  const ledger = new FileLedger(path)
  for (const id of ['a', 'ab', 'abc']) await ledger.append({ ...record(id), model: '語'.repeat(100_000) })
  t.same(await idsIn(ledger, { onDamage: (at) => t.fail(`${at} is whole`) }), ['a', 'ab', 'abc'])
  await ledger.close()
})

t.test('an option that is undefined has its default', async (t) => {
  const path = join(t.testdir({}), 'ledger')
  const unset: object = { maxFileBytes: undefined, maxFileAgeMs: undefined, keepMs: undefined }
  const ledger = new FileLedger(path, { ...unset })
  for (const id of ['a', 'b']) await ledger.append(record(id))
  t.equal(readdirSync(path).length, 1)
  await ledger.close()
})

t.test('memory keeps the newest', async (t) => {
  const ledger = memoryLedger(10)
  for (let i = 0; i < 11; i += 1) await ledger.append(record(`r${i}`))
  t.same((await idsIn(ledger)).slice(0, 2), ['r1', 'r2'])
  t.same(await unsettledIn(ledger), [])
  const small = memoryLedger(2)
  for (const id of ['a', 'b', 'c']) await small.append(record(id))
  t.same(await idsIn(small), ['b', 'c'], 'of however few')
})

t.test('a reader of memory misses nothing that newer records push out meanwhile', async (t) => {
  const ledger = memoryLedger(10)
  const ids = Array.from({ length: 10 }, (_, at) => `r${at}`)
  for (const id of ids) await ledger.append(record(id))
  const read: string[] = []
  for await (const { id } of ledger.read()) {
    read.push(id)
    await ledger.append(record(`newer than ${id}`))
  }
  t.same(read, ids)
})

t.test('memory keeps nothing of the texts that those of a record are pieces of', async (t) => {
  setFlagsFromString('--expose-gc')
  const collect: () => void = runInNewContext('gc')
  const ledger = memoryLedger()
  const piece = (at: number): string => `${at} of `.padEnd(16_000, 'x').slice(0, 100)
  collect()
  const before = process.memoryUsage().heapUsed
  for (let at = 0; at < 2_000; at++) await ledger.append({ ...record(`r${at}`), model: piece(at), labels: { team: piece(at) } })
  collect()
  const grownBytes = process.memoryUsage().heapUsed - before
  t.ok(grownBytes < 2_000 * 4_000, `${grownBytes} bytes for 2,000 records`)
  for await (const { id, model } of ledger.read()) if (id === 'r7') t.equal(model, piece(7))
})
