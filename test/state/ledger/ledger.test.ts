import { spawnSync } from 'node:child_process'
import {
  closeSync, constants, copyFileSync, mkdirSync, readdirSync, readlinkSync, readFileSync, renameSync, rmdirSync, rmSync, statSync,
  symlinkSync, truncateSync, utimesSync, writeFileSync,
} from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t, { type Test } from 'tap'
import { endAll } from '../../../plugins/state/ledger/end-all.js'
import { FileLedger } from '../../../plugins/state/ledger/file-ledger.js'
import { memoryLedger } from '../../../plugins/state/ledger/memory-ledger.js'
import { isFrame, readFrame, writeFrame } from '../../../plugins/state/ledger/frame.js'
import type { Ledger, LedgerRange, LedgerRecord } from '../../../plugins/state/types.js'
import { noTokens } from '../../metrics/requests.js'

const leaves = { ...noTokens, input: 3, output: 4 }

function record (id: string, time = Date.now()): LedgerRecord {
  return { id, time, key: 'ci', group: 'chat', protocol: 'messages', model: 'm', outcome: 'ok', charged: 7, late: [], ...leaves }
}

/** A file where the folder was: it takes nothing. */
function takePlace (path: string): void {
  rmSync(path, { recursive: true })
  writeFileSync(path, '')
}

async function idsIn (ledger: Ledger, range?: LedgerRange): Promise<string[]> {
  const ids: string[] = []
  for await (const { id } of ledger.read(range)) ids.push(id)
  return ids
}

async function unsettledIn (ledger: Ledger): Promise<string[]> {
  const ids: string[] = []
  for await (const { id } of ledger.unsettled()) ids.push(id)
  return ids
}

t.test('a frame holds one record, whatever is in it', async (t) => {
  const odd = { ...record('x'), model: 'a\u2028b\u2029c\nd"\u{1F600}' }
  const line = writeFrame(odd)
  t.equal(line.split(/[\n\u2028\u2029]/).length, 2)
  t.same(readFrame(line.slice(0, -1)), odd)
  const isWhole = (text: string): boolean => isFrame(Buffer.from(text), 0, Buffer.byteLength(text))
  t.equal(isWhole(line.slice(0, -1)), true)
  for (const broken of [
    '', '12345678 ', '00000000 ', line.slice(0, -2), line.replace('ci', 'cj').slice(0, -1), line.slice(0, -1).replace(' ', '\t'),
  ]) {
    t.equal(readFrame(broken), null, broken)
    t.equal(isWhole(broken), false, broken)
  }
})

t.test('a frame is read whatever digits its checksum has, and in no other spelling', async (t) => {
  const lines = Array.from({ length: 256 }, (_, at) => writeFrame(record(`r${at}`, 1)).slice(0, -1))
  for (const digit of '0123456789abcdef') t.ok(lines.some((line) => line.startsWith(digit)), `there is one that begins with ${digit}`)
  for (const line of lines) {
    const bytes = Buffer.from(line)
    t.ok(readFrame(line) !== null && isFrame(bytes, 0, bytes.length), line.slice(0, 8))
    // The same number with a digit that there is not: less than nothing, more than fifteen, or a letter between the digits and the others.
    for (const [pattern, carry, other] of [[/[0-9a-e][0-9a-f]/, 1, -16 + 48], [/[1-9a-f][0-9a-f]/, -1, 16 + 87], [/.a/, 0, 48]] as const) {
      const misspelt = line.replace(pattern, ([one = '', two = '']) =>
        (parseInt(one, 16) + carry).toString(16) + String.fromCharCode(parseInt(two, 16) + other))
      if (misspelt === line) continue
      t.notOk(isFrame(Buffer.from(misspelt), 0, bytes.length), misspelt.slice(0, 8))
      t.equal(readFrame(misspelt), null)
    }
  }
})

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

t.test('what is acknowledged is in the file', async (t) => {
  const path = t.testdir({})
  const ledger = new FileLedger(path)
  await ledger.append(record('acknowledged'))
  const [name = ''] = readdirSync(path)
  t.match(readFileSync(join(path, name), 'utf8'), /^[0-9a-f]{8} \{.*"acknowledged".*\}\n$/)
  await ledger.close()
})

interface Handles {
  appendFile: (text: Buffer) => Promise<void>
  datasync: () => Promise<void>
  truncate: (bytes: number) => Promise<void>
}

/** What the handles of all files inherit. A change of it ends with the test. */
async function handles (t: Test, file: string): Promise<Handles> {
  const other = await open(file)
  const { prototype } = Object(other).constructor
  await other.close()
  const { appendFile, datasync, truncate } = prototype
  t.teardown(() => Object.assign(prototype, { appendFile, datasync, truncate }))
  return prototype
}

t.test('records of one moment share one write, and none is acknowledged before the disk has it', async (t) => {
  const path = t.testdir({ other: '' })
  const prototype = await handles(t, join(path, 'other'))
  const { appendFile, datasync } = prototype
  const order: string[] = []
  const linesIn = (name: string): number => readFileSync(join(path, name), 'utf8').split('\n').length - 1
  prototype.appendFile = async function (text: Buffer) {
    await new Promise((resolve) => setTimeout(resolve, 20))
    await appendFile.call(this, text)
  }
  prototype.datasync = async function () {
    order.push(`${readdirSync(path).filter((name) => name.endsWith('.ledger')).map(linesIn).join()} written`)
    await datasync.call(this)
    order.push('on the disk')
  }
  const ledger = new FileLedger(path)
  await Promise.all(Array.from({ length: 50 }, async (_, i) => {
    await ledger.append(record(`r${i}`))
    order.push('acknowledged')
  }))
  t.same(order, ['50 written', 'on the disk', ...Array(50).fill('acknowledged')])
  await ledger.close()
})

t.test('of many records that waited for the disk a part is written at once, and a part of that acknowledged', async (t) => {
  const path = t.testdir({ other: '' })
  const prototype = await handles(t, join(path, 'other'))
  const { appendFile } = prototype
  const written: number[] = []
  prototype.appendFile = async function (text: Buffer) {
    written.push(text.toString().split('\n').length - 1)
    await appendFile.call(this, text)
  }
  const ledger = new FileLedger(path)
  const acknowledged = [0]
  let isOver = false
  const turn = (): void => {
    acknowledged.push(0)
    if (!isOver) setImmediate(turn)
  }
  turn()
  await Promise.all(Array.from({ length: 10_001 }, async (_, i) => {
    await ledger.append(record(`r${i}`))
    acknowledged.push(Number(acknowledged.pop()) + 1)
  }))
  isOver = true
  t.same(written, [10_000, 1])
  t.equal(Math.max(...acknowledged), 100)
  await ledger.close()
})

const restricted = 'each record waits for the disk under the permission model, which allows no datasync'

t.test(restricted, { skip: process.platform !== 'linux' && 'needs /proc' }, async (t) => {
  const path = t.testdir({ other: '' })
  const prototype = await handles(t, join(path, 'other'))
  // As in Node 26 with `--permission`. Its own switch is for whole processes.
  Object.defineProperty(process, 'permission', { value: {}, configurable: true })
  t.teardown(() => Reflect.deleteProperty(process, 'permission'))
  prototype.datasync = async () => { throw new Error('fdatasync API is disabled when Permission Model is enabled.') }
  const ledger = new FileLedger(path)
  const trouble = new Promise((resolve) => { ledger.onTrouble(resolve) })
  t.equal(await Promise.race([ledger.append(record('first')), trouble]), undefined)
  const [flags = ''] = /(?<=flags:\s+)\d+/.exec(readFileSync(`/proc/self/fdinfo/${openIn(path)[0]}`, 'utf8')) ?? []
  t.equal(Number.parseInt(flags, 8) & constants.O_DSYNC, constants.O_DSYNC)
  t.same(await idsIn(ledger), ['first'])
  await ledger.close()
})

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

t.test('an orderly end makes no file newer than its newest record', async (t) => {
  const path = t.testdir({})
  const ledger = new FileLedger(path, { maxFileBytes: 1 })
  for (const id of ['a', 'b']) await ledger.append(record(id))
  const files = readdirSync(path).map((name) => join(path, name))
  for (const file of files) utimesSync(file, 1, 1)
  await ledger.close()
  for (const file of files) {
    t.match(readFileSync(file, 'utf8'), /\nend\n$/)
    t.equal(statSync(file).mtimeMs, 1_000)
  }
})

t.test('a file that another process deletes meanwhile is none; one that cannot be read is told', async (t) => {
  const path = t.testdir({})
  const killed = new FileLedger(path)
  await killed.append(record('kept'))
  symlinkSync(join(path, 'gone'), join(path, '000000000000000-1-00000000.ledger'))
  const reader = new FileLedger(path)
  t.same(await unsettledIn(reader), ['kept'], 'it stood in the folder, and was gone when it was looked at')
  t.same(await idsIn(reader), ['kept'])

  const other = new FileLedger(path)
  await other.append(record('going'))
  const read = other.read()[Symbol.asyncIterator]()
  t.match(await read.next(), { value: { id: 'kept' } })
  for (const name of readdirSync(path)) rmSync(join(path, name))
  t.match(await read.next(), { done: true }, 'or when it was read')

  const looped = join(path, '000000000000001-1-00000000.ledger')
  symlinkSync(looped, looped)
  await t.rejects(idsIn(reader), { code: 'ELOOP' })
  rmSync(looped)
  mkdirSync(looped)
  await t.rejects(idsIn(reader), { code: 'EISDIR' })
  rmdirSync(looped)
  await Promise.all([killed.close(), other.close()])
})

t.test('nothing more is written to a file that somebody deleted, cut off or moved, nor does it miss its folder', async (t) => {
  const path = join(t.testdir({}), 'ledger')
  const ledger = new FileLedger(path)
  await ledger.append(record('deleted'))
  for (const name of readdirSync(path)) rmSync(join(path, name))
  await ledger.append(record('kept'))
  t.same(await idsIn(ledger), ['kept'])
  await ledger.append(record('too'))
  t.equal(readdirSync(path).length, 1, 'a file that is there goes on')
  truncateSync(join(path, String(readdirSync(path)[0])), 5)
  for (const id of ['one more', 'and one']) await ledger.append(record(id))
  t.equal(readdirSync(path).length, 2, 'one that was cut off does not')
  t.same(await idsIn(ledger), ['one more', 'and one'])
  for (const name of readdirSync(path)) renameSync(join(path, name), join(path, `../${name}`))
  for (const id of ['behind', 'it']) await ledger.append(record(id))
  t.equal(readdirSync(path).length, 1)
  t.same(await idsIn(ledger), ['behind', 'it'])
  const at = join(path, String(readdirSync(path)[0]))
  renameSync(at, join(path, '../moved'))
  writeFileSync(at, '')
  for (const id of ['whose', 'name is taken']) await ledger.append(record(id))
  t.equal(readdirSync(path).length, 2, 'one in whose place another was made does not, either')
  t.same(await idsIn(ledger), ['whose', 'name is taken'])
  rmSync(path, { recursive: true })
  await ledger.append(record('again'))
  t.same(await idsIn(ledger), ['again'])
  await ledger.close()
})

const meanwhile: ReadonlyArray<readonly [what: string, change: (file: string, moved: string) => void]> = [
  ['deleted', (file) => rmSync(file)],
  ['moved', (file, moved) => renameSync(file, moved)],
  ['copied and moved', (file, moved) => {
    renameSync(file, moved)
    copyFileSync(moved, file)
  }],
  ['emptied', (file) => truncateSync(file)],
]
for (const [what, change] of meanwhile) {
  t.test(`a record that is being written while its file is ${what} is kept, once`, async (t) => {
    const path = t.testdir({ other: '' })
    const [other, moved] = [join(path, 'other'), join(path, '1.ledger')]
    const prototype = await handles(t, other)
    const ledger = new FileLedger(path)
    await ledger.append(record('before'))
    const [first] = readdirSync(path)
    const { appendFile } = prototype
    prototype.appendFile = async function (text) {
      prototype.appendFile = appendFile
      change(join(path, String(first)), moved)
      await appendFile.call(this, text)
    }
    for (const id of ['meanwhile', 'after']) await ledger.append(record(id))
    const ids = await idsIn(ledger, { onDamage: (at) => t.fail(`${at} is whole`) })
    t.same(ids.filter((id) => id !== 'before'), ['meanwhile', 'after'])
    // A usage store does not look again at what it has read.
    const holding = readdirSync(path).filter((name) => readFileSync(join(path, name), 'utf8').includes('"meanwhile"'))
    t.ok(holding.length === 1 && !holding.includes(String(first)), 'in a file of its own')
    await ledger.close()
  })
}

t.test('a record that the disk has stays where it is if its file cannot be looked at', async (t) => {
  const path = join(t.testdir({}), 'ledger')
  const ledger = new FileLedger(path)
  await ledger.append(record('before'))
  renameSync(path, `${path}-away`)
  // What is below it cannot be looked at, as below a folder without rights.
  writeFileSync(path, '')
  const trouble = new Promise((resolve) => { ledger.onTrouble(resolve) })
  t.equal(await Promise.race([ledger.append(record('meanwhile')), trouble]), undefined)
  rmSync(path)
  renameSync(`${path}-away`, path)
  await ledger.append(record('after'))
  t.same(await idsIn(ledger), ['before', 'meanwhile', 'after'])
  await ledger.close()
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

t.test('where its volume is unmounted, nothing is written in its place: records wait until it is back', async (t) => {
  const dir = t.testdir({})
  const [volume, away] = [join(dir, 'volume'), join(dir, 'away')]
  const ledger = new FileLedger(join(volume, 'ledger'))
  renameSync(volume, away)
  mkdirSync(volume)
  const kept = ledger.append(record('waits'))
  await ledger.flush()
  t.same(readdirSync(volume), [])
  rmdirSync(volume)
  renameSync(away, volume)
  await kept
  t.same(await idsIn(ledger), ['waits'])
  await ledger.close()
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

t.test('a disk that takes nothing: records wait, in order, none twice', async (t) => {
  const path = join(t.testdir({}), 'ledger')
  const ledger = new FileLedger(path)
  takePlace(path)
  const first = ledger.append(record('first'))
  await new Promise((resolve) => setTimeout(resolve, 50))
  const second = ledger.append(record('second'))
  rmSync(path)
  await Promise.all([first, second])
  t.same(await idsIn(ledger), ['first', 'second'])
  await ledger.close()
})

t.test('that a disk takes nothing is told as news once, and whoever ends waits for one more try at most', async (t) => {
  const path = join(t.testdir({}), 'ledger')
  let now = Date.now()
  const ledger = new FileLedger(path, {}, () => now)
  const told: unknown[] = []
  let tries = 0
  const end = ledger.onTrouble((error, again) => {
    tries += 1
    if (!again) told.push(error)
  })
  await ledger.flush()
  takePlace(path)
  const kept = ledger.append(record('first'))
  await ledger.flush()
  await ledger.flush()
  t.match(told, [{ code: 'EEXIST' }])
  t.equal(told.length, 1)
  t.equal(tries, 2, 'each try is')
  rmSync(path)
  await kept
  takePlace(path)
  now += 1_000
  const next = ledger.append(record('second'))
  await ledger.flush()
  t.equal(told.length, 2, 'the next trouble is news again')
  rmSync(path)
  await next
  end()
  await ledger.close()
  t.same(await idsIn(ledger), ['second'])
})

t.test('a write that stops half way leaves nothing behind', {
  skip: spawnSync('prlimit', ['--version']).status !== 0 && 'prlimit is not installed',
}, async (t) => {
  const path = t.testdir({})
  const ledger = new FileLedger(path)
  // The system ends a process that writes beyond its limit, unless it listens. The limit is that of the whole process: nothing
  // may be printed under it, nor a file be left open before, of which the collector would warn.
  const ignore = (): void => {}
  process.on('SIGXFSZ', ignore)
  t.teardown(() => process.off('SIGXFSZ', ignore))
  const limit = (bytes: string): void => { spawnSync('prlimit', ['--pid', String(process.pid), `--fsize=${bytes}:`]) }
  await ledger.append(record('first'))
  limit('400')
  const failed = new Promise((resolve) => ledger.onTrouble(resolve))
  const more = Promise.all(['second', 'third'].map(async (id) => await ledger.append(record(id))))
  const trouble = await failed
  limit('unlimited')
  t.match(trouble, { code: 'EFBIG' })
  const damaged: string[] = []
  t.same(await idsIn(ledger, { onDamage: (file) => damaged.push(file) }), ['first'])
  await more
  t.same(await idsIn(ledger, { onDamage: (file) => damaged.push(file) }), ['first', 'second', 'third'])
  t.same(damaged, [])
  await ledger.close()
})

t.test('what was written, could not be kept and could not be taken back at once is in no file twice', async (t) => {
  const path = t.testdir({ other: '' })
  const prototype = await handles(t, join(path, 'other'))
  const ledger = new FileLedger(path)
  await ledger.append(record('first'))
  const { datasync, truncate } = prototype
  for (const [name, real] of Object.entries({ datasync, truncate })) {
    Object.assign(prototype, {
      [name]: async () => {
        Object.assign(prototype, { [name]: real })
        throw Object.assign(new Error('no space'), { code: 'ENOSPC' })
      },
    })
  }
  await Promise.all(['second', 'third'].map(async (id) => await ledger.append(record(id))))
  t.same(await idsIn(ledger), ['first', 'second', 'third'])
  await ledger.close()
})

t.test('what is taken back is no more than was written, where another process marked the file', async (t) => {
  const path = t.testdir({ other: '' })
  const prototype = await handles(t, join(path, 'other'))
  const ledger = new FileLedger(path)
  await ledger.append(record('first'))
  endAll(path)
  await ledger.append(record('second'))
  const { datasync } = prototype
  prototype.datasync = async () => {
    Object.assign(prototype, { datasync })
    throw Object.assign(new Error('no space'), { code: 'ENOSPC' })
  }
  await Promise.all(['third', 'fourth'].map(async (id) => await ledger.append(record(id))))
  t.same(await idsIn(ledger, { onDamage: (at) => t.fail(`${at} is whole`) }), ['first', 'second', 'third', 'fourth'])
  await ledger.close()
})

t.test('a disk that takes no end mark keeps nothing from its end', { skip: process.platform !== 'linux' && 'needs /proc' }, async (t) => {
  const path = t.testdir({})
  const ledger = new FileLedger(path)
  await ledger.append(record('first'))
  closeSync(Number(openIn(path)[0]))
  await ledger.close()
  t.same(await unsettledIn(new FileLedger(path)), ['first'], 'it is looked at again')
})

t.test('a file that is lost is left for another', { skip: process.platform !== 'linux' && 'needs /proc' }, async (t) => {
  const path = t.testdir({})
  const ledger = new FileLedger(path)
  for (const id of ['first', 'second']) await ledger.append(record(id))
  closeSync(Number(openIn(path)[0]))
  await ledger.append(record('third'))
  t.equal(readdirSync(path).length, 2)
  t.same(await idsIn(ledger), ['first', 'second', 'third'])
  await ledger.close()
})

t.test('an end waits for the records that are not kept yet', async (t) => {
  const path = t.testdir({})
  const ledger = new FileLedger(path)
  await ledger.append(record('first'))
  const kept = ledger.append(record('last'))
  await ledger.close()
  t.match(readFileSync(join(path, String(readdirSync(path)[0])), 'utf8'), /"first".*\n.*"last".*\nend\n$/)
  await kept
})

t.test('a file that is full, and at the end each one, is closed', { skip: process.platform !== 'linux' && 'needs /proc' }, async (t) => {
  const path = t.testdir({})
  const ledger = new FileLedger(path, { maxFileBytes: 1 })
  for (const id of ['a', 'b', 'c']) await ledger.append(record(id))
  t.equal(openIn(path).length, 1)
  await ledger.close()
  // At once: the process may end now.
  for (const name of readdirSync(path)) t.match(readFileSync(join(path, name), 'utf8'), /\nend\n$/)
  t.same(openIn(path), [])
})

/** Descriptors of the files that this process has open in a folder. */
function openIn (path: string): string[] {
  return readdirSync('/proc/self/fd').filter((fd) => linkOf(fd).startsWith(path))
}

function linkOf (fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`)
  } catch {
    return ''
  }
}

t.test('a disk that takes nothing until the end: the loss is told', async (t) => {
  const path = join(t.testdir({}), 'ledger')
  const ledger = new FileLedger(path)
  takePlace(path)
  const lost = ledger.append(record('lost'))
  lost.catch(() => {})
  await new Promise((resolve) => setTimeout(resolve, 20))
  await ledger.close()
  await t.rejects(lost, { code: 'LLM_GATEWAY_STORE_DOWN', message: /could not keep usage records/ })
})

t.test('only so many records wait for a disk', async (t) => {
  const path = join(t.testdir({}), 'ledger')
  const ledger = new FileLedger(path, {}, Date.now, 2)
  takePlace(path)
  const waiting = ['a', 'b'].map(async (id) => await ledger.append(record(id)))
  await t.rejects(ledger.append(record('c')), { message: /cannot keep more/ })
  rmSync(path)
  await Promise.all(waiting)
  await ledger.append(record('c'))
  await ledger.close()
  t.same(await idsIn(ledger), ['a', 'b', 'c'], 'what is kept waits no more')
})
