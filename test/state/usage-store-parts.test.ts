import {
  appendFileSync, existsSync, mkdirSync, readdirSync, readlinkSync, rmdirSync, rmSync, statSync, symlinkSync, truncateSync, writeFileSync,
} from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { endAll } from '../../plugins/state/ledger/end-all.js'
import { FileLedger } from '../../plugins/state/ledger/file-ledger.js'
import { writeFrame } from '../../plugins/state/ledger/frame.js'
import { Backlog, type Unshipped } from '../../plugins/state/usage-store/backlog.js'
import { readMarks, writeMarks } from '../../plugins/state/usage-store/marks.js'
import { readUsageStore } from '../../plugins/state/usage-store/options.js'
import { countRecords, firstLines, readPiece } from '../../plugins/state/usage-store/pieces.js'
import { shipFile } from '../../plugins/state/usage-store/ship-file.js'
import { Shipper } from '../../plugins/state/usage-store/shipper.js'
import { UsageStore } from '../../plugins/state/usage-store/store.js'
import type { LedgerRecord } from '../../plugins/state/index.js'
import { freePort } from '../helpers/free-port.js'
import { startPostgres, withoutPostgres } from './postgres-server.js'
import { agrees, arrive, folder, host, idsIn, keep, record, records, shipped, storeOf } from './usage-store.js'

const name = '000000000000001-1-0badc0de.ledger'
const ownsNone = (): boolean => false

/** A backlog of a folder with one file, which is counted. */
async function lookIn (path: string): Promise<{ readonly backlog: Backlog, readonly file: Unshipped }> {
  const backlog = new Backlog(path, ownsNone)
  await backlog.look(() => 0)
  const [file] = backlog.files
  if (file === undefined) throw new Error('there is a file')
  return { backlog, file }
}

/** A store that answers a batch with the next of these errors, or takes it in. */
function failing (store: UsageStore, errors: Array<Error | null>): UsageStore {
  const takeIn: UsageStore['takeIn'] = async (...batch) => {
    const error = errors.shift()
    if (error instanceof Error) throw error
    return await store.takeIn(...batch)
  }
  return new Proxy(store, { get: (real, field) => field === 'takeIn' ? takeIn : Reflect.get(real, field) })
}

t.test('pieces are whole lines, however long', async (t) => {
  const file = join(folder(t), 'a')
  const long = 'x'.repeat(600_000)
  writeFileSync(file, `one\n${long}\nend\ncut`)
  const first = await readPiece(file, 0)
  if (first === null) throw new Error('there is a line')
  t.equal(first.bytes.toString(), 'one')
  t.same(firstLines(first, 5), { lines: ['one'], end: 4 })
  const second = await readPiece(file, first.end)
  if (second === null) throw new Error('there are two')
  t.same(firstLines(second, 1), { lines: [long], end: 4 + long.length + 1 })
  t.same(firstLines(second, 2).lines.length, 2)
  t.equal(countRecords(second, 'end'), 1)
  t.equal(await readPiece(file, second.end), null)
  t.equal(await readPiece(file, second.end + 3), null)
  writeFileSync(file, '\n')
  t.match(await readPiece(file, 0), { end: 1 }, 'an empty one')
})

t.test('end marks are no records, wherever they stand', async (t) => {
  const bytes = Buffer.from('first\nend\nsecond\nend\nend')
  t.equal(countRecords({ bytes, end: bytes.length + 1 }, 'end'), 2)
})

t.test('what was read is closed', { skip: existsSync('/proc/self/fd') ? false : 'no /proc here' }, async (t) => {
  const file = join(folder(t), 'a')
  writeFileSync(file, 'one\n')
  await readPiece(file, 0)
  const open = readdirSync('/proc/self/fd').map((at) => { try { return readlinkSync(`/proc/self/fd/${at}`) } catch { return '' } })
  t.notOk(open.includes(file))
})

t.test('marks that cannot be kept are as those that are not there', async (t) => {
  const path = folder(t)
  const rules = readUsageStore({ url: 'postgres://x' })
  await writeMarks(path, rules, new Map([['a', 5]]))
  t.same([...readMarks(path, rules)], [['a', 5]])
  t.same([...readMarks(path, readUsageStore({ url: 'postgres://y' }))], [], 'of another store')
  const other = folder(t)
  const [mark = ''] = readdirSync(path)
  mkdirSync(join(other, mark))
  await writeMarks(other, rules, new Map([['a', 5]]))
  t.same([...readMarks(other, rules)], [])
  t.same(readdirSync(other), [mark], 'nothing is left behind')
  await writeMarks(join(other, 'gone'), rules, new Map())
})

t.test('a backlog forgets files that are gone and knows whose time it cannot read', async (t) => {
  const path = folder(t)
  const backlog = new Backlog(path, ownsNone)
  t.match(backlog, { records: 0, since: null })
  writeFileSync(join(path, name), 'no record\n')
  const before = Date.now()
  await backlog.look(() => 0)
  t.equal(backlog.records, 1)
  t.ok(Number(backlog.since) >= before)
  t.equal(backlog.has(name, 10), false)
  await backlog.note(new Map([[name, 10], ['another', 1]]))
  t.equal(backlog.has(name, 10), true)
  t.equal(backlog.has(name, 11), false, 'what nobody has looked at may be anything')
  appendFileSync(join(path, name), 'another\n')
  await backlog.look(() => 0)
  t.equal(backlog.records, 1, 'a file of which the store has all may still grow')
  await backlog.note(new Map([[name, 18]]))
  appendFileSync(join(path, name), 'end\n')
  await backlog.look(() => 0)
  t.match(backlog.files, [{ ended: true, records: 0 }])
  const empty = new Backlog(folder(t), ownsNone)
  await empty.look(() => 0)
  t.same(empty.files, [])
})

t.test('what was not counted is not shipped: its file must not go', async (t) => {
  const path = folder(t)
  writeFileSync(join(path, name), `${writeFrame(record())}cut`)
  const bytes = statSync(join(path, name)).size
  const backlog = new Backlog(path, ownsNone)
  const look = { isDone: false }
  const looking = backlog.look(() => 0).finally(() => { look.isDone = true })
  while (!look.isDone) {
    t.equal(backlog.has(name, bytes), false)
    await new Promise(setImmediate)
  }
  await looking
  const [file] = backlog.files
  if (file === undefined) throw new Error('there is one')
  backlog.shipped(file, { end: bytes - 3, records: 1, time: 1 })
  t.equal(backlog.has(name, bytes), true, 'what a crash cut off is never shipped')
  const noting = backlog.note(new Map([[name, 0]]))
  t.equal(backlog.has(name, bytes), false, 'a store that has less again')
  await noting
  t.equal(backlog.has(name, bytes), false)
  rmSync(join(path, name))
  await backlog.look(() => 0)
  t.equal(backlog.has(name, bytes), false)
  t.equal(backlog.files.length, 0)
})

t.test('what a writer took back, because its disk did not keep it, waits no more', async (t) => {
  const path = folder(t)
  const file = join(path, name)
  const [kept, back] = [1, 2].map((time) => writeFrame(record({ time })))
  writeFileSync(file, `${kept}${back}`)
  const backlog = new Backlog(path, ownsNone)
  await backlog.look(() => 0)
  t.equal(backlog.records, 2)
  const bytes = String(kept).length
  truncateSync(file, bytes)
  await backlog.look(() => 0)
  t.match(backlog, { records: 1, since: 1 })
  for (const each of backlog.files) backlog.shipped(each, { end: bytes, records: 1, time: 1 })
  t.match(backlog, { records: 0, since: null })
  t.equal(backlog.has(name, bytes), true)
})

t.test('a file that has ended is counted again where the store has less of it again and the file could not be read', async (t) => {
  const path = folder(t)
  const file = join(path, name)
  const text = `${writeFrame(record())}end\n`
  writeFileSync(file, text)
  const backlog = new Backlog(path, ownsNone)
  await backlog.look(() => text.length)
  await backlog.note(new Map([[name, 0]]))
  t.match(backlog.files, [{ ended: true, records: 1 }])
  await backlog.note(new Map([[name, text.length]]))
  rmSync(file)
  // It cannot be read.
  mkdirSync(file)
  await t.rejects(backlog.note(new Map([[name, 0]])))
  rmdirSync(file)
  writeFileSync(file, text)
  await backlog.look(() => text.length)
  t.match(backlog.files, [{ ended: true, records: 1 }])
})

t.test('what a process writes behind a mark that another one put into its file waits to be shipped, too', async (t) => {
  const path = folder(t)
  const ledger = new FileLedger(path)
  const backlog = new Backlog(path, ledger.owns)
  await ledger.append(record())
  endAll(path)
  await backlog.look(() => 0)
  t.match(backlog.files, [{ ended: true, records: 1 }])
  await ledger.append(record())
  await backlog.look(() => 0)
  t.match(backlog.files, [{ ended: false, records: 2 }])
  await ledger.close()
  await backlog.look(() => 0)
  t.match(backlog.files, [{ ended: true, records: 2 }])
})

t.test('records that come while others are counted or shipped are counted once', async (t) => {
  const path = folder(t)
  const file = join(path, name)
  const lines = [1, 2, 3, 4].map((time) => writeFrame(record({ time })))
  const ends = lines.map((_, at) => lines.slice(0, at + 1).join('').length)
  const upTo = (count: number): number => Number(ends[count - 1])
  writeFileSync(file, lines.slice(0, 2).join(''))
  const { backlog, file: found } = await lookIn(path)
  backlog.shipped(found, { end: upTo(1), records: 1, time: 2 })
  t.match(backlog, { records: 1, since: 2 })
  t.equal(backlog.has(name, upTo(2)), false, 'one waits')
  appendFileSync(file, String(lines[2]))
  backlog.shipped(found, { end: upTo(3), records: 2, time: 3 })
  await backlog.look(() => 0)
  t.equal(backlog.records, 0, 'what was shipped before it was counted does not wait')
  t.equal(backlog.has(name, upTo(3)), true)
  appendFileSync(file, String(lines[3]))
  const look = { isDone: false }
  const looking = backlog.look(() => 0).finally(() => { look.isDone = true })
  while (!look.isDone) {
    t.equal(backlog.has(name, upTo(4)), false)
    await new Promise(setImmediate)
  }
  await looking
  t.match(backlog, { records: 1, since: 4 })
  t.equal(backlog.has(name, upTo(4)), false)
  appendFileSync(file, writeFrame(record({ time: 5 })))
  await backlog.look(() => 0)
  t.match(backlog, { records: 2, since: 4 }, 'of the oldest')
  writeFileSync(join(path, name.replace('1', '2')), `${writeFrame(record({ time: 3 }))}end\n`)
  await backlog.look(() => 0)
  t.match(backlog, { records: 3, since: 3, files: [{ ended: false }, { ended: true }] }, 'of all files')
})

t.test('a file that goes between two looks at it is none', async (t) => {
  const path = folder(t)
  symlinkSync(join(path, 'gone'), join(path, name))
  const backlog = new Backlog(path, ownsNone)
  await backlog.look(() => 0)
  t.equal(backlog.files.length, 0)
})

t.test('a file and a real store', { skip: withoutPostgres }, async (t) => {
  const server = await startPostgres()
  t.teardown(server.stop)

  t.test('another process has read on, or the file is cut back', async (t) => {
    const store = storeOf(server)
    const path = folder(t)
    const all = records(3)
    const lines = all.map(writeFrame)
    writeFileSync(join(path, name), lines.join(''))
    const open = await UsageStore.open(readUsageStore(store), Date.now)
    t.teardown(async () => await open.close())
    const whole = lines.join('').length
    const { backlog, file } = await lookIn(path)
    await server.ask(`INSERT INTO ${store.schema}.shipped_files VALUES ($1, $2, now())`, [name, whole + 100])
    await shipFile(open, backlog, file, () => {})
    t.equal(file.shipped, whole + 100, 'as the store says')
    await agrees(t, server, store, all)
    Object.assign(file, { shipped: 0, counted: whole })
    truncateSync(join(path, name), 5)
    await shipFile(open, backlog, file, () => {})
    t.equal(file.shipped, 0)
  })

  t.test('hosts that come at the same moment make the tables once, and the months, drop an old one once, and meet no error', async (t) => {
    const rules = readUsageStore(storeOf(server, { keepMs: 1 }))
    const hosts = await Promise.all(Array.from({ length: 8 }, async () => {
      const open = await UsageStore.open(rules, Date.now)
      t.teardown(async () => await open.close())
      return open
    }))
    await server.ask(`CREATE TABLE ${rules.schema}.usage_2020_01 PARTITION OF ${rules.schema}.usage ` +
      "FOR VALUES FROM ('2020-01-01Z') TO ('2020-02-01Z')")
    await Promise.all(hosts.map(async (each) => await each.tend()))
    t.match(await server.ask(`SELECT count(*)::int AS months FROM pg_inherits WHERE inhparent = '${rules.schema}.usage'::regclass`), [{
      months: 2,
    }])
  })

  t.test('where a table of the operator takes the present months, none is added, and nothing is wrong', async (t) => {
    const store = storeOf(server)
    const open = await UsageStore.open(readUsageStore(store), Date.now)
    t.teardown(async () => await open.close())
    await server.ask(`CREATE TABLE ${store.schema}.all_years PARTITION OF ${store.schema}.usage ` +
      "FOR VALUES FROM ('2000-01-01Z') TO ('9000-01-01Z')")
    await open.tend()
    const all = records(2)
    await open.takeIn(all, name, 0, 1)
    await agrees(t, server, store, all)
    t.match(await server.ask(`SELECT count(*)::int FROM ${store.schema}.all_years`), [{ count: 2 }])
  })

  t.test('hosts that add to the same sums at the same moment never wait for each other', async (t) => {
    const store = storeOf(server)
    const rules = readUsageStore(store)
    const hosts = await Promise.all([0, 1, 2, 3].map(async () => await UsageStore.open(rules, Date.now)))
    t.teardown(async () => await Promise.all(hosts.map(async (each) => await each.close())))
    const keys = Array.from({ length: 400 }, (_, at) => `key ${at}`)
    const all: LedgerRecord[] = []
    for (let round = 0; round < 8; round += 1) {
      await Promise.all(hosts.map(async (each, at) => {
        const some = (at % 2 === 0 ? keys : keys.toReversed()).slice(at * 60).map((key) => record({ key }))
        all.push(...some)
        await each.takeIn(some, `${round} ${at}`, 0, 1)
      }))
    }
    await agrees(t, server, store, all)
  })

  t.test('a connection that ends between the halves of a batch leaves the second one to be sent again', async (t) => {
    const store = storeOf(server)
    const path = folder(t)
    const all = records(4)
    writeFileSync(join(path, name), all.map(writeFrame).join(''))
    const open = await UsageStore.open(readUsageStore(store), Date.now)
    t.teardown(async () => await open.close())
    const { backlog, file } = await lookIn(path)
    const noPlace = Object.assign(new Error('it has no place'), { code: '22003' })
    const broken = failing(open, [noPlace, null, new Error('the connection ended')])
    await t.rejects(shipFile(broken, backlog, file, () => t.fail('none is refused')), { message: 'the connection ended' })
    t.same(await idsIn(server, store), all.slice(0, 2).map(({ id }) => id).sort())
    t.equal((await open.positions([name])).get(name), 0)
    await shipFile(open, backlog, file, () => {})
    await agrees(t, server, store, all)
  })

  t.test('an end mark among records that are shipped leaves those behind it waiting', async (t) => {
    const store = storeOf(server)
    const path = folder(t)
    const all = records(500)
    const lines = all.map(writeFrame)
    const text = [...lines.slice(0, 250), 'end\n', ...lines.slice(250)].join('')
    writeFileSync(join(path, name), text)
    const open = await UsageStore.open(readUsageStore(store), Date.now)
    t.teardown(async () => await open.close())
    const { backlog, file } = await lookIn(path)
    const broken = failing(open, [null, new Error('the connection ended')])
    await t.rejects(shipFile(broken, backlog, file, () => t.fail('none is refused')), { message: 'the connection ended' })
    t.equal(backlog.records, 1)
    t.equal(backlog.has(name, text.length), false, 'the file must stay')
    await shipFile(open, backlog, file, () => {})
    t.equal(backlog.records, 0)
    await agrees(t, server, store, all)
  })

  t.test('a file that begins while others are looked at is not shipped before the store is asked of all', async (t) => {
    const store = storeOf(server)
    const path = folder(t)
    const [all, more, others] = [records(3), records(2), records(2)]
    const put = (name: string, lines: readonly string[]): void => writeFileSync(join(path, name), lines.join(''))
    put('000000000000001-1-own.ledger', all.map(writeFrame))
    const theirs = others.map(writeFrame)
    put('000000000000001-2-other.ledger', theirs)
    await (await UsageStore.open(readUsageStore(store), Date.now)).close()
    const half = String(theirs[0]).length
    await server.ask(`INSERT INTO ${store.schema}.shipped_files VALUES ('000000000000001-2-other.ledger', $1, now())`, [half])
    const begin = { isDue: false }
    // Asked of files with records that wait, as the other process's has.
    const owns = (name: string): boolean => {
      if (begin.isDue) put('000000000000002-1-next.ledger', more.map(writeFrame))
      begin.isDue = false
      return name.includes('-1-')
    }
    const start = Date.now()
    const shipper = new Shipper({ folder: path, rules: readUsageStore(store), owns, now: () => start })
    shipper.start()
    t.teardown(async () => await shipper.close())
    await arrive(server, store, all)
    while (shipper.unshipped > 1) await pause(5)
    await server.ask(`DELETE FROM ${store.schema}.usage`)
    await server.ask(`UPDATE ${store.schema}.shipped_files SET bytes = 0 WHERE file LIKE '%own.ledger'`)
    begin.isDue = true
    await arrive(server, store, [...all, ...more])
    t.same(await idsIn(server, store), [...all, ...more].map(({ id }) => id).sort())
  })

  t.test('an end that comes while a connection is being made leaves none behind', async (t) => {
    const port = await freePort()
    const { port: behind } = new URL(server.url)
    const sockets = new Set<{ destroy: () => unknown }>()
    // Slower than the end is patient.
    const slow = createServer((socket) => {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => sockets.delete(socket))
      setTimeout(() => {
        const to = connect(Number(behind), '127.0.0.1')
        to.on('error', () => {})
        socket.pipe(to).pipe(socket)
      }, 3_000)
    })
    slow.listen(port, '127.0.0.1')
    t.teardown(() => slow.close())
    const state = await host(t, folder(t), storeOf(server, { url: `postgres://tester@127.0.0.1:${port}/postgres` }))
    state.ledger.shipping?.onTrouble((error) => t.fail(`${error}, and nobody is there any more`))
    while (sockets.size === 0) await pause(10)
    await state.close()
    while (sockets.size > 0) await pause(50)
    t.pass('it is closed once it is made')
  })

  t.test('an end ships what is there, however long the interval', async (t) => {
    const store = storeOf(server, { intervalMs: 3_600_000 })
    const state = await host(t, folder(t), store)
    const made = async (): Promise<object[]> => await server.ask(`SELECT WHERE to_regclass('${store.schema}.usage') IS NOT NULL`)
    while ((await made()).length === 0) await pause(10)
    const all = records(3)
    await keep(state, all)
    await state.close()
    await agrees(t, server, store, all)
  })

  t.test('an end leaves no connection behind', async (t) => {
    await server.ask('CREATE ROLE leaver SUPERUSER LOGIN')
    const store = storeOf(server, { url: server.url.replace('tester@', 'leaver@') })
    const state = await host(t, folder(t), store)
    const all = records(1)
    await keep(state, all)
    await arrive(server, store, all)
    await state.close()
    while ((await server.ask("SELECT FROM pg_stat_activity WHERE usename = 'leaver'")).length > 0) await pause(20)
    t.pass('there is none')
  })

  t.test('who listened for trouble may stop', async (t) => {
    const state = await host(t, folder(t), storeOf(server))
    const unheard = state.ledger.shipping?.onTrouble(() => t.fail('it is not heard any more'))
    unheard?.()
    await keep(state, [record({ id: 'odd', charged: 1.5 }), record()])
    await pause(50)
    await shipped(state)
  })
})
