import { constants, readdirSync, readFileSync, statSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { FileLedger } from '../../../plugins/state/ledger/file-ledger.js'
import { handles, idsIn, openIn, record } from './ledger-host.js'

t.test('what is acknowledged is in the file', async (t) => {
  const path = t.testdir({})
  const ledger = new FileLedger(path)
  await ledger.append(record('acknowledged'))
  const [name = ''] = readdirSync(path)
  t.match(readFileSync(join(path, name), 'utf8'), /^[0-9a-f]{8} \{.*"acknowledged".*\}\n$/)
  await ledger.close()
})

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
