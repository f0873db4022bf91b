import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect as connectTo, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import pg from 'pg'
import type { LedgerRecord } from '../../plugins/state/index.js'
import { connect, migrate } from '../../plugins/state/usage-store/connection.js'
import { freePort } from '../helpers/free-port.js'
import { startPostgres, withoutPostgres } from './postgres-server.js'
import { agrees, arrive, folder, host, idsIn, keep, records, storeOf } from './usage-store.js'

t.test('a usage store in trouble', { skip: withoutPostgres }, async (t) => {
  const server = await startPostgres({ max_connections: 12, superuser_reserved_connections: 1 })
  t.teardown(server.stop)

  t.test('a server that is killed and comes back has lost nothing and has nothing twice', async (t) => {
    const store = storeOf(server)
    const state = await host(t, folder(t), store)
    const told: boolean[] = []
    state.ledger.shipping?.onTrouble((_, again) => told.push(again))
    const all: LedgerRecord[] = []
    for (let round = 0; round < 3; round += 1) {
      const some = records(800)
      all.push(...some)
      await keep(state, some)
      await pause(Math.random() * 60)
      await server.kill()
      const waiting = records(50)
      all.push(...waiting)
      await keep(state, waiting)
      while (Number(state.ledger.shipping?.unshipped) < waiting.length) await pause(10)
      t.ok(Number(state.ledger.shipping?.lagMs) >= 0)
      await server.start()
    }
    await arrive(server, store, all)
    await agrees(t, server, store, all)
    t.equal(told[0], false, 'trouble is told')
  })

  t.test('connections that are used up by others', async (t) => {
    const store = storeOf(server)
    const others = Array.from({ length: 16 }, () => new pg.Client({ connectionString: server.url }))
    for (const other of others) other.on('error', () => {})
    const connected = await Promise.allSettled(others.map(async (other) => await other.connect()))
    t.ok(connected.some(({ status }) => status === 'rejected'), 'there is none left')
    const state = await host(t, folder(t), store)
    const codes: unknown[] = []
    const told: boolean[] = []
    state.ledger.shipping?.onTrouble((error, again) => {
      codes.push(Reflect.get(Object(error), 'code'))
      told.push(again)
    })
    const all = records(100)
    await keep(state, all)
    while (codes.length < 3) await pause(10)
    t.equal(codes[0], '53300')
    t.strictSame(told.slice(0, 3), [false, true, true], 'one trouble is not told as a new one each time')
    await Promise.all(others.map(async (other) => await other.end().catch(() => {})))
    await arrive(server, store, all)
    // By the next one the pass that brought those is over, with its looking after tables.
    const next = records(1)
    await keep(state, next)
    all.push(...next)
    await arrive(server, store, all)
    told.length = 0
    await server.kill()
    const waiting = records(1)
    await keep(state, waiting)
    while (told.length === 0) await pause(10)
    t.equal(told[0], false, 'but the next one is')
    await server.start()
    all.push(...waiting)
    await arrive(server, store, all)
    await agrees(t, server, store, all)
  })

  t.test('a disk that is full', async (t) => {
    const disk = join(server.dir, 'disk')
    mkdirSync(disk)
    if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m,mode=777', 'tmpfs', disk]).status !== 0) {
      return t.comment('no file system can be mounted here')
    }
    t.teardown(() => spawnSync('umount', ['-l', disk]))
    chmodSync(disk, 0o777)
    const space = join(disk, 'space')
    spawnSync('install', ['-d', '-o', process.getuid?.() === 0 ? 'nobody' : String(process.getuid?.()), '-m', '700', space])
    await server.ask(`CREATE TABLESPACE small LOCATION '${space}'`)
    await server.ask('ALTER DATABASE postgres SET default_tablespace = small')
    const store = storeOf(server)
    const state = await host(t, folder(t), store)
    const codes: unknown[] = []
    state.ledger.shipping?.onTrouble((error) => codes.push(Reflect.get(Object(error), 'code')))
    const all = records(3_000, { labels: { team: 'x'.repeat(400) } })
    await keep(state, all)
    while (codes.length === 0) await pause(10)
    t.equal(codes[0], '53100')
    t.ok((await idsIn(server, store)).length < all.length)
    t.equal(spawnSync('mount', ['-o', 'remount,size=64m', disk]).status, 0)
    await arrive(server, store, all)
    await agrees(t, server, store, all)
    await state.close()
    await server.ask(`DROP SCHEMA ${store.schema} CASCADE`)
    await server.ask('ALTER DATABASE postgres RESET default_tablespace')
    await server.ask('DROP TABLESPACE small')
  })

  t.test('a server that takes nothing more, as a replica or one whose disk is nearly full', async (t) => {
    const store = storeOf(server)
    const state = await host(t, folder(t), store)
    const all = records(20)
    await keep(state, all.slice(0, 10))
    await arrive(server, store, all.slice(0, 10))
    const codes: unknown[] = []
    state.ledger.shipping?.onTrouble((error) => codes.push(Reflect.get(Object(error), 'code')))
    await server.ask('ALTER SYSTEM SET default_transaction_read_only = on')
    await server.ask('SELECT pg_reload_conf()')
    await pause(100)
    await keep(state, all.slice(10))
    while (codes.length === 0) await pause(10)
    t.equal(codes[0], '25006')
    await server.ask('ALTER SYSTEM RESET default_transaction_read_only')
    await server.ask('SELECT pg_reload_conf()')
    await arrive(server, store, all)
    await agrees(t, server, store, all)
  })

  t.test('a user that may add rows, and neither add nor drop months, ships all the same', async (t) => {
    const dayMs = 24 * 60 * 60_000
    const store = storeOf(server, { keepMs: 40 * dayMs })
    const owner = await host(t, folder(t), store)
    const [own, others] = [records(5), records(5)]
    await keep(owner, own)
    await arrive(server, store, own)
    await owner.close()
    await server.ask(`CREATE TABLE ${store.schema}.usage_2020_01 PARTITION OF ${store.schema}.usage ` +
      "FOR VALUES FROM ('2020-01-01Z') TO ('2020-02-01Z')")
    await server.ask('CREATE ROLE clerk LOGIN')
    await server.ask(`GRANT USAGE ON SCHEMA ${store.schema} TO clerk`)
    await server.ask(`GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA ${store.schema} TO clerk`)
    const clerk = await host(t, folder(t), { ...store, url: server.url.replace('tester@', 'clerk@') })
    const codes: unknown[] = []
    clerk.ledger.shipping?.onTrouble((error) => codes.push(Reflect.get(Object(error), 'code')))
    await keep(clerk, others)
    await arrive(server, store, [...own, ...others])
    await agrees(t, server, store, [...own, ...others])
    while (codes.length === 0) await pause(10)
    t.equal(codes[0], '42501', 'it is told what it may not')
  })

  t.test('a user that owns a schema, and may make none, makes the tables in it', async (t) => {
    const store = storeOf(server)
    await server.ask('CREATE ROLE tenant LOGIN')
    await server.ask(`CREATE SCHEMA ${store.schema} AUTHORIZATION tenant`)
    const tenant = await host(t, folder(t), { ...store, url: server.url.replace('tester@', 'tenant@') })
    const all = records(3)
    await keep(tenant, all)
    await arrive(server, store, all)
    await agrees(t, server, store, all)
  })

  t.test('a user that may add no months ships into the table that an operator has for them', async (t) => {
    const store = storeOf(server)
    const owner = await host(t, folder(t), store)
    const all = records(3)
    await keep(owner, all.slice(0, 1))
    await arrive(server, store, all.slice(0, 1))
    await owner.close()
    await server.ask(`CREATE TABLE ${store.schema}.year PARTITION OF ${store.schema}.usage ` +
      "FOR VALUES FROM ('2019-01-01Z') TO ('2020-01-01Z')")
    await server.ask('CREATE ROLE guest LOGIN')
    await server.ask(`GRANT USAGE ON SCHEMA ${store.schema} TO guest`)
    await server.ask(`GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA ${store.schema} TO guest`)
    const guest = await host(t, folder(t), { ...store, url: server.url.replace('tester@', 'guest@') })
    all.push(...records(1, { time: Date.UTC(2019, 5, 15) }))
    const refused: string[] = []
    guest.ledger.shipping?.onTrouble((error) => refused.push(String(error)))
    // Also past a record that the store has no place for: no month is missing for it.
    await keep(guest, [...records(1, { time: Date.UTC(2018, 5, 15), charged: 1.5 }), ...all.slice(1)])
    await arrive(server, store, all)
    await agrees(t, server, store, all)
    t.match(refused[0], /bigint/)
  })

  t.test('a month that a report holds is tried again: batches and other reports do not wait for as long', async (t) => {
    const store = storeOf(server, { keepMs: 40 * 24 * 60 * 60_000, timeoutMs: 600_000 })
    const first = await host(t, folder(t), store)
    const all = records(1)
    await keep(first, all)
    await arrive(server, store, all)
    await first.close()
    await server.ask(`CREATE TABLE ${store.schema}.usage_2020_01 PARTITION OF ${store.schema}.usage ` +
      "FOR VALUES FROM ('2020-01-01Z') TO ('2020-02-01Z')")
    const report = new pg.Client({ connectionString: server.url })
    await report.connect()
    await report.query('BEGIN')
    await report.query(`SELECT count(*) FROM ${store.schema}.usage`)
    const state = await host(t, folder(t), store)
    const codes: unknown[] = []
    state.ledger.shipping?.onTrouble((error) => codes.push(Reflect.get(Object(error), 'code')))
    while (codes.length === 0) await pause(10)
    t.equal(codes[0], '55P03')
    const more = records(3)
    await keep(state, more)
    await arrive(server, store, [...all, ...more])
    await report.end()
    const found = async (): Promise<object[]> => await server.ask(`SELECT WHERE to_regclass('${store.schema}.usage_2020_01') IS NOT NULL`)
    while ((await found()).length > 0) await pause(10)
    await agrees(t, server, store, [...all, ...more])
  })

  t.test('a connection that is ended while it is idle is made anew, and no trouble is told', async (t) => {
    const dayMs = 24 * 60 * 60_000
    const store = storeOf(server, { keepMs: 400 * dayMs })
    let aheadMs = 0
    const state = await host(t, folder(t), store, { now: () => Date.now() + aheadMs })
    const all = records(2)
    // When the second one is there, the pass that brought the first one is over.
    for (const each of all) {
      await keep(state, [each])
      await arrive(server, store, all.slice(0, all.indexOf(each) + 1))
    }
    const told: unknown[] = []
    state.ledger.shipping?.onTrouble((error) => told.push(error))
    const own = "SELECT pid FROM pg_stat_activity WHERE application_name = 'llm-gateway'"
    const [{ pid } = { pid: 0 }] = await server.ask<{ pid: number }>(`${own} AND state = 'idle'`)
    await server.ask(`SELECT pg_terminate_backend(${pid})`)
    while ((await server.ask(`${own} AND pid = ${pid}`)).length > 0) await pause(10)
    // Several passes, on a day on which months would be looked after.
    aheadMs = 2 * dayMs
    await pause(200)
    t.same(await server.ask(own), [], 'not before there is something to ship')
    all.push(...records(1))
    await keep(state, all.slice(2))
    await arrive(server, store, all)
    t.same(told, [])
  })

  t.test('the server itself ends what takes too long, and sooner what waits for a lock', async (t) => {
    const { ask, close } = await connect({ url: server.url, password: null, timeoutMs: 400 })
    t.teardown(close)
    await t.rejects(ask('SELECT pg_sleep(20)'), { code: '57014' })
    const other = new pg.Client({ connectionString: server.url })
    await other.connect()
    t.teardown(async () => await other.end())
    await other.query('SELECT pg_advisory_lock(1)')
    await t.rejects(ask('SELECT pg_advisory_lock(1)'), { code: '55P03' })
  })

  t.test('a report that is read more slowly than the server allows says why it ends', async (t) => {
    const { stream, isOpen, close } = await connect({ url: server.url, password: null, timeoutMs: 30_000 })
    t.teardown(close)
    // From the first rows on: the steps before them may take long on a busy machine.
    const rows = stream("SELECT generate_series(1, 5000), set_config('idle_in_transaction_session_timeout', '50ms', false)", [])
    t.equal((await rows.next()).value?.length, 2_000)
    while (isOpen()) await pause(10)
    await t.rejects(rows.next(), { message: /idle-in-transaction timeout/ })
  })

  t.test('a newer version that makes the tables at the same moment keeps them as its own', async (t) => {
    const { schema, ...store } = storeOf(server)
    const newer = new pg.Client({ connectionString: server.url })
    await newer.connect()
    t.teardown(async () => await newer.end())
    await newer.query('BEGIN')
    await newer.query(`SELECT pg_advisory_xact_lock(hashtext('${schema}'))`)
    await newer.query(`CREATE SCHEMA ${schema}`)
    await newer.query(`CREATE TABLE ${schema}.version AS SELECT 99 AS version`)
    const connection = await connect({ ...store, password: null, timeoutMs: 30_000 })
    t.teardown(connection.close)
    const migrated = migrate(connection, schema)
    while ((await server.ask("SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")).length === 0) await pause(10)
    await newer.query('COMMIT')
    await migrated
    t.same(await server.ask(`SELECT version FROM ${schema}.version`), [{ version: 99 }])
  })

  t.test('a server that hangs holds neither records nor the end', async (t) => {
    const store = storeOf(server, { timeoutMs: 300 })
    const path = folder(t)
    const state = await host(t, path, store)
    const all = records(20)
    await keep(state, all.slice(0, 10))
    await arrive(server, store, all.slice(0, 10))
    const serving = (await server.ask<{ pid: number }>("SELECT pid FROM pg_stat_activity WHERE application_name = 'llm-gateway'")).map(
      ({ pid }) => pid
    )
    t.equal(serving.length, 1)
    for (const pid of serving) process.kill(pid, 'SIGSTOP')
    const reasons: string[] = []
    state.ledger.shipping?.onTrouble((error) => reasons.push(String(error)))
    await keep(state, all.slice(10))
    while (reasons.length === 0) await pause(10)
    t.match(reasons, [/timeout/])
    // Whoever is asked next hangs, too.
    server.signal('SIGSTOP')
    await state.close()
    server.signal('SIGCONT')
    for (const pid of serving) process.kill(pid, 'SIGCONT')
    const next = await host(t, path, store)
    await arrive(server, store, all)
    await agrees(t, server, store, all)
    await next.close()
  })
})

t.test('a password in a file is that of a server behind a socket, too, whatever is in it', { skip: withoutPostgres }, async (t) => {
  const sockets = folder(t)
  chmodSync(sockets, 0o777)
  const server = await startPostgres({ unix_socket_directories: sockets })
  t.teardown(server.stop)
  const word = '50%off, %41 /@#?:%'
  await server.ask(`CREATE ROLE gateway LOGIN PASSWORD '${word}'`)
  const rules = join(server.dir, 'data', 'pg_hba.conf')
  writeFileSync(rules, `local all gateway scram-sha-256\nhost all gateway 127.0.0.1/32 scram-sha-256\n${readFileSync(rules, 'utf8')}`)
  await server.ask('SELECT pg_reload_conf()')
  const { port } = new URL(server.url)
  for (const url of [
    `postgres://gateway@127.0.0.1:${port}/postgres`,
    `postgres://gateway@/postgres?host=${sockets}&port=${port}`,
    `postgres:///postgres?user=gateway&host=${sockets}&port=${port}`,
  ]) {
    const { ask, close } = await connect({ url, password: () => word, timeoutMs: 5_000 })
    t.same(await ask('SELECT current_user AS name'), [{ name: 'gateway' }], url)
    await close()
  }
  // Neither client nor server ends a connection that lacks its password, for a minute.
  const open = new Set<Socket>()
  const between = createServer((socket) => {
    open.add(socket.once('close', () => open.delete(socket)))
    const to = connectTo(Number(port), '127.0.0.1')
    for (const each of [socket, to]) each.on('error', () => {})
    socket.pipe(to).pipe(socket)
  })
  const at = await freePort()
  between.listen(at, '127.0.0.1')
  await once(between, 'listening')
  t.teardown(() => between.close())
  const url = `postgres://gateway@127.0.0.1:${at}/postgres`
  await t.rejects(connect({ url, password: null, timeoutMs: 5_000 }), { message: /password must be a string/ })
  while (open.size > 0) await pause(10)
})
