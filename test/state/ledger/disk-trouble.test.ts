import { spawnSync } from 'node:child_process'
import { closeSync, openSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { endAll } from '../../../plugins/state/ledger/end-all.js'
import { FileLedger } from '../../../plugins/state/ledger/file-ledger.js'
import { handles, idsIn, openIn, record, takePlace, unsettledIn } from './ledger-host.js'

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
  const handle = Number(openIn(path)[0])
  const [file = ''] = readdirSync(path)
  closeSync(handle)
  // What reads alone takes its number: anything else could come to have it, and would be closed in its place.
  const readers: number[] = []
  while (!readers.includes(handle)) readers.push(openSync(join(path, file), 'r'))
  await ledger.append(record('third'))
  for (const each of readers) if (each !== handle) closeSync(each)
  t.equal(readdirSync(path).length, 2)
  t.same(await idsIn(ledger), ['first', 'second', 'third'])
  await ledger.close()
})

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
