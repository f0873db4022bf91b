import { randomBytes } from 'node:crypto'
import {
  appendFileSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, statSync, truncateSync, utimesSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import t, { type Test } from 'tap'
import { openState, type LedgerRecord } from '../../plugins/state/index.js'
import { connect, migrate } from '../../plugins/state/usage-store/connection.js'
import { readUsageStore } from '../../plugins/state/usage-store/options.js'
import { openUsageReader } from '../../plugins/state/usage-store/reader.js'
import { monthOf } from '../../plugins/state/usage-store/statements.js'
import { startPostgres, withoutPostgres } from './postgres-server.js'
import { agrees, arrive, folder, host, idsIn, keep, record, records, shipped, storeOf } from './usage-store.js'

t.test('usage store', { skip: withoutPostgres }, async (t) => {
  const server = await startPostgres()
  t.teardown(server.stop)

  t.test('every record arrives once, with all that it says, in the month of its end', async (t) => {
    const store = storeOf(server)
    const state = await host(t, folder(t), store)
    const full = record({
      time: Date.parse('2026-01-31T23:59:59.999Z'),
      upstreamModel: 'm-2',
      cost: '123456789012.000000000001',
      price: '0123456789abcdef',
      serviceTier: 'flex',
      labels: { team: 'search', app: 'a "b"' },
      late: ['group'],
      lateBuckets: [],
      chargedCost: 7,
      bill: { startedAt: Date.parse('2026-01-31T23:59:58Z'), counts: { search: 2 } },
    })
    const none = record({
      time: Date.parse('2026-02-01T00:00:00Z'), key: null, group: null, model: null, cost: null, costParts: { input: null },
    })
    const all = [full, none, ...records(1_200)]
    await keep(state, all)
    await arrive(server, store, all)
    await agrees(t, server, store, all)
    t.match(await server.ask(`SELECT *, time::text AS at, cost::text AS exact FROM ${store.schema}.usage_2026_01`), [{
      id: full.id,
      key_id: 'ci',
      group_id: 'chat',
      model: 'm',
      upstream_model: 'm-2',
      exact: full.cost,
      currency: 'USD',
      price: full.price,
      service_tier: 'flex',
      unpriced: false,
      labels: full.labels,
      details: { late: ['group'], chargedCost: 7, bill: full.bill, costParts: full.costParts },
    }])
    t.match(await server.ask(`SELECT * FROM ${store.schema}.usage_2026_02`), [{
      id: none.id, key_id: null, model: null, cost: null, unpriced: true, labels: null,
    }])
    await shipped(state)
    t.match(state.ledger.shipping, { unshipped: 0, lagMs: 0 })
  })

  t.test('an end leaves nothing to wait for', async (t) => {
    const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    const before = timers()
    const store = storeOf(server)
    const state = await host(t, folder(t), store)
    const all = records(2)
    await keep(state, all)
    await arrive(server, store, all)
    await shipped(state)
    await state.close()
    t.ok(timers() <= before)
  })

  t.test('a batch that is sent again, and a second host with the same files, change nothing', async (t) => {
    const store = storeOf(server)
    const path = folder(t)
    const all = records(700)
    const first = await host(t, path, store)
    await keep(first, all)
    await arrive(server, store, all)
    await first.close()
    const [twin, copy] = [folder(t), folder(t)]
    for (const to of [twin, copy]) cpSync(join(path, 'ledger'), join(to, 'ledger'), { recursive: true })
    await server.ask(`DELETE FROM ${store.schema}.shipped_files`)
    const hosts = await Promise.all([twin, copy].map(async (at) => await host(t, at, store)))
    const more = records(300)
    await Promise.all(hosts.map(async (each, at) => await keep(each, more.slice(at * 150, at * 150 + 150))))
    await arrive(server, store, [...all, ...more])
    await agrees(t, server, store, [...all, ...more])
  })

  t.test('a store that is restored from an older copy while its gateways run gets what it lacks', async (t) => {
    const store = storeOf(server)
    const { schema } = store
    let now = Date.now()
    const state = await host(t, folder(t), store, { now: () => now, ledger: { maxFileAgeMs: 1_000 } })
    const all = records(10)
    await keep(state, all)
    await arrive(server, store, all)
    const tables = ['usage', 'usage_quarters', 'shipped_files']
    for (const table of tables) await server.ask(`CREATE TABLE ${schema}.${table}_copy AS TABLE ${schema}.${table}`)
    // In one transaction: none of its batches meets a table that is away.
    const restore = async (): Promise<unknown> => await server.ask(`DO $$ BEGIN ${tables.map((table) =>
      `TRUNCATE ${schema}.${table}; INSERT INTO ${schema}.${table} SELECT * FROM ${schema}.${table}_copy;`).join('\n')} END $$`)
    const lacks = async (): Promise<void> => {
      const more = records(20)
      all.push(...more)
      await keep(state, more)
      await arrive(server, store, all)
      await shipped(state)
      await restore()
    }
    const told: string[] = []
    state.ledger.shipping?.onTrouble((error) => told.push(String(error)))
    await lacks()
    const next = records(5)
    all.push(...next)
    await keep(state, next)
    await arrive(server, store, all)
    await agrees(t, server, store, all)
    t.match(told[0], /has less than it had/)

    await lacks()
    now += 1_000
    const last = records(5)
    all.push(...last)
    await keep(state, last)
    await arrive(server, store, all)
    await agrees(t, server, store, all)
    t.equal(told.length, 1, 'the next file asks how far those before it are read')
  })

  t.test('one that is restored from a copy older than a file gets all of it', async (t) => {
    const store = storeOf(server)
    const state = await host(t, folder(t), store)
    const all = records(10)
    await keep(state, all)
    await arrive(server, store, all)
    await shipped(state)
    await server.ask(`TRUNCATE ${['usage', 'usage_quarters', 'shipped_files'].map((table) => `${store.schema}.${table}`).join()}`)
    all.push(...records(5))
    await keep(state, all.slice(10))
    await arrive(server, store, all)
    await agrees(t, server, store, all)
  })

  t.test('a request without a price leaves the sum of the others as it is, before it and after it', async (t) => {
    const store = storeOf(server)
    const state = await host(t, folder(t), store)
    const time = Date.UTC(2026, 10, 2)
    const all = ['0.25', null, '0.5'].map((cost) => record({ cost, costParts: { input: cost }, time }))
    all.push(...records(2, { cost: null, costParts: { input: null }, key: 'other', time }), record({ key: 'other', time }))
    for (const [at, each] of all.entries()) {
      await keep(state, [each])
      await arrive(server, store, all.slice(0, at + 1))
    }
    await agrees(t, server, store, all)
    t.same(await server.ask(`SELECT sum(unpriced)::int AS unpriced FROM ${store.schema}.usage_quarters`), [{ unpriced: 3 }])
  })

  t.test('what a killed process left is shipped by another one of its folder, and a torn line is none', async (t) => {
    const store = storeOf(server)
    const path = folder(t)
    const all = records(20)
    const killed = await openState({ engine: 'lmdb', path })
    await keep(killed, all.slice(0, 10))
    const [name = ''] = readdirSync(join(path, 'ledger'))
    const dead = join(path, 'ledger', name.replace(/-.*/, '-1-0badc0de.ledger'))
    cpSync(join(path, 'ledger', name), dead)
    await keep(killed, [record()])
    await killed.close()
    // Its last line was cut off, and it has no end.
    appendFileSync(dead, '0badc0de {"time":1}\n12')
    truncateSync(join(path, 'ledger', name), statSync(dead).size)
    let now = Date.now()
    const state = await host(t, path, store, { now: () => now })
    await keep(state, all.slice(10))
    await arrive(server, store, all.slice(10))
    t.equal((await idsIn(server, store)).length, 10, 'a file of another process is its own affair for a while')
    now += 10_000
    await arrive(server, store, all)
    await agrees(t, server, store, all)
    await shipped(state)
  })

  t.test('what a killed process wrote while its clock was ahead is shipped all the same, and seen to wait', async (t) => {
    const store = storeOf(server)
    const path = folder(t)
    const start = Date.now()
    const all = records(3, { time: start + 3_600_000 })
    const killed = await openState({ engine: 'lmdb', path })
    t.teardown(killed.close)
    await keep(killed, all)
    const now = (): number => start
    const away = await host(t, path, { ...store, url: 'postgres://tester@127.0.0.1:9/postgres' }, { now })
    while (away.ledger.shipping?.unshipped !== 3) await pause(10)
    t.equal(away.ledger.shipping.lagMs, 3_600_000)
    await away.close()
    await host(t, path, store, { now })
    await arrive(server, store, all)
    await agrees(t, server, store, all)
  })

  t.test('a record that the store has no place for is put aside, and keeps none of the others from it', async (t) => {
    const store = storeOf(server)
    const path = folder(t)
    const state = await host(t, path, store)
    const reasons: string[] = []
    state.ledger.shipping?.onTrouble((error) => reasons.push(String(error)))
    const odd = record({ model: 'nul \u0000, half \ud800, whole \u{1F600}, \\u0000' })
    const [before, after] = [records(5), records(5)]
    const late = record({ id: 'late', time: Date.UTC(9999, 11) })
    const long = record({ id: randomBytes(6_000).toString('base64') })
    await keep(state, [...before, record({ id: 'fraction', charged: 1.5 }), odd, record({ id: 'when', time: 1e20 }), late, long, ...after])
    const all = [...before, odd, ...after]
    await arrive(server, store, all)
    await agrees(t, server, store, all)
    t.strictSame(await server.ask(`SELECT model FROM ${store.schema}.usage WHERE id = $1`, [odd.id]), [{
      model: 'nul \ufffd, half \ufffd, whole \u{1F600}, \\u0000',
    }])
    while (reasons.length < 4) await pause(10)
    const refused = readFileSync(join(path, 'ledger', 'refused.jsonl'), 'utf8').trim().split('\n').map((line) => JSON.parse(line))
    t.match(refused, [
      { reason: /bigint/, record: { id: 'fraction' } },
      { reason: /RangeError/, record: { id: 'when' } },
      { reason: /9999-12/, record: { id: 'late' } },
      { reason: /index row/, record: { id: long.id } },
    ])
    await keep(state, [record({ id: 'last', charged: 1.5 })])
    while (reasons.length < 5) await pause(10)
    await shipped(state)
    const sizes = readdirSync(join(path, 'ledger')).filter((name) => name.endsWith('.ledger'))
      .map((name) => statSync(join(path, 'ledger', name)).size)
    t.same(await server.ask(`SELECT bytes::int FROM ${store.schema}.shipped_files`), sizes.map((bytes) => ({ bytes })), 'it is read, too')
  })

  /** A database of a test's own, and the rows of a question to it: none before the first host has made its tables. */
  const database = async (t: Test, name: string, options = ''): Promise<{ url: string, rows: (text: string) => Promise<object[]> }> => {
    await server.ask(`CREATE DATABASE ${name} ${options}`)
    const url = server.url.replace(/postgres$/, name)
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    t.teardown(async () => await client.end())
    return { url, rows: async (text) => (await client.query(text).catch(() => ({ rows: [] }))).rows }
  }

  t.test('a database without an encoding takes what is no character, too', async (t) => {
    const { url, rows } = await database(t, 'bytes', "ENCODING 'SQL_ASCII' TEMPLATE template0")
    const store = storeOf(server, { url })
    const state = await host(t, folder(t), store)
    state.ledger.shipping?.onTrouble((error) => t.fail(String(error)))
    const all = records(1, { model: 'nul \u0000, half \ud800, \u00e9', labels: { team: 'half \udc00' } })
    await keep(state, all)
    const found = async (): Promise<object[]> => await rows(`SELECT model, labels FROM ${store.schema}.usage_quarters`)
    while ((await found()).length < all.length) await pause(20)
    t.same(await found(), [{ model: 'nul \ufffd, half \ufffd, \u00e9', labels: { team: 'half \ufffd' } }])
  })

  t.test('a database all of whose tables are published gets the tables all the same', async (t) => {
    const { url, rows } = await database(t, 'published')
    await rows('CREATE PUBLICATION everything FOR ALL TABLES')
    const store = storeOf(server, { url })
    const state = await host(t, folder(t), store)
    state.ledger.shipping?.onTrouble((error) => t.fail(String(error)))
    await keep(state, records(1))
    while ((await rows(`SELECT FROM ${store.schema}.usage_quarters`)).length === 0) await pause(20)
    t.same(await rows(`SELECT version FROM ${store.schema}.version`), [{ version: 1 }])
  })

  t.test('a server that refuses MD5, as in FIPS mode, sums all the same', async (t) => {
    const { url, rows } = await database(t, 'fips')
    await rows('CREATE ROLE auditor LOGIN')
    await rows('GRANT CREATE ON DATABASE fips TO auditor')
    await rows('REVOKE EXECUTE ON FUNCTION md5(text), md5(bytea) FROM public')
    const store = storeOf(server, { url: url.replace('tester@', 'auditor@') })
    const state = await host(t, folder(t), store)
    state.ledger.shipping?.onTrouble((error) => t.fail(String(error)))
    await keep(state, records(1))
    const found = async (): Promise<object[]> => await rows(`SELECT requests FROM ${store.schema}.usage_quarters`)
    while ((await found()).length === 0) await pause(20)
    t.same(await found(), [{ requests: '1' }])
  })

  t.test('a record that the store has no place for waits, with those behind it, until it can be put aside', async (t) => {
    const store = storeOf(server)
    const path = folder(t)
    const state = await host(t, path, store)
    const codes: unknown[] = []
    state.ledger.shipping?.onTrouble((error) => codes.push(Reflect.get(Object(error), 'code')))
    const refused = join(path, 'ledger', 'refused.jsonl')
    mkdirSync(refused)
    const [before, after] = [records(2), records(2)]
    await keep(state, [...before, record({ id: 'fraction', charged: 1.5 }), ...after])
    while (codes.length === 0) await pause(10)
    t.equal(codes[0], 'EISDIR')
    rmdirSync(refused)
    await arrive(server, store, [...before, ...after])
    await agrees(t, server, store, [...before, ...after])
    t.match(readFileSync(refused, 'utf8'), /^\{.*"id":"fraction".*\}\n$/)
  })

  t.test('records that another process of the folder ships do not wait in this one', async (t) => {
    const store = storeOf(server)
    const path = folder(t)
    const time = Date.now()
    // None of them becomes old enough to be what a killed process left.
    const now = (): number => time
    const [one, other] = [await host(t, path, store, { now }), await host(t, path, store, { now })]
    const all: LedgerRecord[] = []
    for (let round = 0; round < 3; round += 1) {
      for (const state of [one, other]) {
        const next = record({ time })
        all.push(next)
        await keep(state, [next])
        await arrive(server, store, all)
      }
      for (const state of [one, other]) await shipped(state)
    }
    await agrees(t, server, store, all)
  })

  t.test('a schema may have a name that SQL reserves', async (t) => {
    const dayMs = 24 * 60 * 60_000
    const store = storeOf(server, { schema: 'user', keepMs: 40 * dayMs })
    const quoted = { schema: '"user"' }
    let now = Date.parse('2024-03-05T00:00:00Z')
    const state = await host(t, folder(t), store, { now: () => now })
    const all = [record({ time: now }), record({ time: now - 10 * dayMs })]
    await keep(state, all)
    await arrive(server, quoted, all)
    await agrees(t, server, quoted, all)

    const reader = await openUsageReader(store)
    t.teardown(reader.close)
    const wanted = { group: [], key: [], model: [], protocol: [], outcome: [] }
    for await (const found of reader.records({ from: 0, to: Infinity, wanted })) t.equal(found.length, 2)
    for (const from of [0, 1]) {
      for await (const found of reader.sums(['group'], 'UTC', { from, to: Infinity, wanted })) t.match(found, [{ requests: 2 }])
    }

    now = Date.parse('2024-04-12T00:00:00Z')
    while ((await idsIn(server, quoted)).length > 1) await pause(20)
    t.same(await idsIn(server, quoted), [all[0]?.id], 'an old month is dropped')
  })

  t.test('months end: their tables are dropped when they are old, files are not before they are shipped', async (t) => {
    const dayMs = 24 * 60 * 60_000
    const store = storeOf(server, { keepMs: 40 * dayMs })
    const path = folder(t)
    let now = Date.parse('2024-03-05T00:00:00Z')
    const ledger = { maxFileAgeMs: 1, keepMs: dayMs }
    const state = await host(t, path, store, { now: () => now, ledger })
    const tables = async (): Promise<string[]> =>
      (await server.ask<{ name: string }>('SELECT child.relname AS name FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid ' +
        `WHERE inhparent = '${store.schema}.usage'::regclass ORDER BY 1`)).map(
        ({ name }) => name
      )
    const february = record({ time: now - 10 * dayMs })
    const tooOld = record({ time: now - 80 * dayMs })
    await keep(state, [tooOld, february])
    await arrive(server, store, [february])
    while ((await tables()).length < 3) await pause(10)
    t.same(await tables(), ['usage_2024_02', 'usage_2024_03', 'usage_2024_04'], 'the next one is there before it begins')
    t.notOk(existsSync(join(path, 'ledger', 'refused.jsonl')), 'what is too old is not wanted, and no mistake')
    await server.ask(`DROP TABLE ${store.schema}.usage_2024_02`)
    const late = record({ time: now - 9 * dayMs })
    now += 1
    await keep(state, [late])
    await arrive(server, store, [late])
    const own = async (name: string, from: string, to: string): Promise<unknown> =>
      await server.ask(`CREATE TABLE ${name} PARTITION OF ${store.schema}.usage FOR VALUES FROM ('${from}') TO ('${to}')`)
    await own(`${store.schema}.archive_2019`, '2019-01-01', '2020-01-01')
    await own('public.usage_2020_01', '2020-01-01', '2020-02-01')
    now = Date.parse('2024-04-12T00:00:00Z')
    while ((await tables()).includes('usage_2024_02')) await pause(20)
    const months = ['usage_2024_03', 'usage_2024_04', 'usage_2024_05']
    t.same(await tables(), ['archive_2019', 'usage_2020_01', ...months], 'what an operator attached stays')
    t.match(await server.ask(`SELECT sum(requests)::int AS requests FROM ${store.schema}.usage_quarters`), [{ requests: 2 }], 'sums stay')

    await server.ask(`ALTER TABLE ${store.schema}.usage RENAME TO away`)
    const kept = record({ time: now })
    await keep(state, [kept])
    for (const name of readdirSync(join(path, 'ledger')).filter((each) => each.endsWith('.ledger'))) {
      utimesSync(join(path, 'ledger', name), 1, 1)
    }
    now += 2
    await keep(state, [record({ time: now })])
    const files = (): string => readdirSync(join(path, 'ledger')).filter((name) => name.endsWith('.ledger'))
      .map((name) => readFileSync(join(path, 'ledger', name), 'utf8'))
      .join('')
    t.match(files(), kept.id)
    t.notMatch(files(), february.id, 'what is shipped went')
    await server.ask(`ALTER TABLE ${store.schema}.away RENAME TO usage`)
    await shipped(state)
  })

  t.test('a host whose clock is a year ahead makes no month old, and none of the records that wait', async (t) => {
    const dayMs = 24 * 60 * 60_000
    const store = storeOf(server, { keepMs: 40 * dayMs })
    const all = records(5)
    const right = await host(t, folder(t), store)
    await keep(right, all.slice(1))
    await arrive(server, store, all.slice(1))
    await right.close()
    const ahead = await host(t, folder(t), store, { now: () => Date.now() + 365 * dayMs })
    await keep(ahead, all.slice(0, 1))
    await arrive(server, store, all)
    const { name } = monthOf(Date.now() + 365 * dayMs)
    const isTended = async (): Promise<unknown> =>
      (await server.ask<{ made: boolean }>(`SELECT to_regclass('${store.schema}.${name}') IS NOT NULL AS made`))[0]?.made
    while (await isTended() !== true) await pause(10)
    await shipped(ahead)
    await ahead.close()
    await agrees(t, server, store, all)
  })

  t.test('what a host has from before goes into the sums if `keepMs` is set afterwards, and not if it is set at once', async (t) => {
    const dayMs = 24 * 60 * 60_000
    const [old, young] = [record({ time: Date.now() - 100 * dayMs }), record()]
    const path = folder(t)
    const before = await openState({ engine: 'lmdb', path })
    await keep({ ...before }, [old, young])
    await before.close()
    const counted = async (...rules: object[]): Promise<unknown> => {
      const store = storeOf(server)
      for (const more of rules) {
        const state = await host(t, path, { ...store, ...more })
        await arrive(server, store, [young])
        await shipped(state)
        while (Object.keys(more).length > 0 && (await idsIn(server, store)).length > 1) await pause(10)
        await state.close()
      }
      return await server.ask(`SELECT sum(requests)::int AS requests FROM ${store.schema}.usage_quarters`)
    }
    t.same(await counted({ keepMs: 40 * dayMs }), [{ requests: 1 }])
    t.same(await counted({}, { keepMs: 40 * dayMs }), [{ requests: 2 }])
  })

  t.test('records of a month that an operator has a table of his own for go there', async (t) => {
    const store = storeOf(server)
    const state = await host(t, folder(t), store)
    const some = records(3)
    await keep(state, some)
    await arrive(server, store, some)
    await server.ask(`CREATE TABLE ${store.schema}.archive PARTITION OF ${store.schema}.usage ` +
      "FOR VALUES FROM ('2019-01-01Z') TO ('2020-01-01Z')")
    const reasons: string[] = []
    state.ledger.shipping?.onTrouble((error) => reasons.push(String(error)))
    const old = record({ time: Date.UTC(2019, 5, 15) })
    await keep(state, [old])
    await arrive(server, store, [...some, old])
    await agrees(t, server, store, [...some, old])
    t.match(await server.ask(`SELECT id FROM ${store.schema}.archive`), [{ id: old.id }])
    t.same(reasons, [])
  })

  t.test('a column by which an operator has records numbered numbers those of later months, too', async (t) => {
    const store = storeOf(server)
    const connection = await connect({ ...store, password: null, timeoutMs: 30_000 })
    t.teardown(connection.close)
    await migrate(connection, store.schema)
    await server.ask(`ALTER TABLE ${store.schema}.usage ADD COLUMN number bigint GENERATED ALWAYS AS IDENTITY`)
    const state = await host(t, folder(t), store)
    state.ledger.shipping?.onTrouble((error) => t.fail(String(error)))
    const all = [...records(2), ...records(1, { time: Date.UTC(2020, 0, 15) })]
    await keep(state, all)
    await arrive(server, store, all)
    t.same(await server.ask(`SELECT count(DISTINCT number) FROM ${store.schema}.usage`), [{ count: '3' }])
    const own = `SELECT FROM pg_class WHERE relkind = 'S' AND relnamespace = '${store.schema}'::regnamespace`
    t.equal((await server.ask(own)).length, 1, 'no month has numbers of its own, which servers from 17 on refuse')
  })

  t.test('months that are kept for longer than there is a calendar are kept for ever', async (t) => {
    for (const keepMs of [100_000_000_000_000, Number.MAX_SAFE_INTEGER]) {
      const store = storeOf(server, { keepMs })
      const path = folder(t)
      const state = await host(t, path, store)
      const all = records(3)
      await keep(state, all)
      await arrive(server, store, all)
      await agrees(t, server, store, all)
      t.notOk(existsSync(join(path, 'ledger', 'refused.jsonl')))
    }
  })

  t.test('a table for all that no other takes keeps the rows of its months, and no trouble is told', async (t) => {
    const store = storeOf(server)
    const first = await host(t, folder(t), store)
    // So old that whoever comes ships it, before it looks after the tables.
    const time = Date.now() - 10_000
    const all = records(2, { time })
    await keep(first, all.slice(0, 1))
    await arrive(server, store, all.slice(0, 1))
    await first.close()
    await server.ask(`DROP TABLE ${store.schema}.${monthOf(time).name}`)
    await server.ask(`CREATE TABLE ${store.schema}.rest PARTITION OF ${store.schema}.usage DEFAULT`)
    const path = folder(t)
    const before = await openState({ engine: 'lmdb', path })
    await keep(before, all.slice(1))
    await before.close()
    const next = await host(t, path, store)
    const told: string[] = []
    next.ledger.shipping?.onTrouble((error) => told.push(String(error)))
    await arrive(server, store, all.slice(1))
    await shipped(next)
    await next.close()
    t.match(await server.ask(`SELECT id FROM ${store.schema}.rest`), [{ id: all[1]?.id }])
    t.same(told, [])
  })

  t.test('tables are made once, by whoever comes first, and never by an older version', async (t) => {
    const store = storeOf(server)
    const hosts = await Promise.all([0, 1, 2].map(async () => await host(t, folder(t), store)))
    const all = records(3)
    await Promise.all(hosts.map(async (each, at) => await keep(each, all.slice(at, at + 1))))
    await arrive(server, store, all)
    t.match(await server.ask(`SELECT version FROM ${store.schema}.version`), [{ version: 1 }])
    await Promise.all(hosts.map(async (each) => await each.close()))
    await server.ask(`UPDATE ${store.schema}.version SET version = 99`)
    await server.ask('CREATE ROLE older SUPERUSER LOGIN')
    const older = await host(t, folder(t), { ...store, url: server.url.replace('tester@', 'older@') })
    const reasons: string[] = []
    older.ledger.shipping?.onTrouble((error) => reasons.push(String(error)))
    while (reasons.length < 3) await pause(10)
    for (const reason of reasons) t.match(reason, /was made by a newer version of the gateway/)
    // Each try closes its own.
    while ((await server.ask("SELECT FROM pg_stat_activity WHERE usename = 'older'")).length > 1) await pause(10)
  })

  t.test('what is not shipped is known after a restart while the store is away', async (t) => {
    const store = storeOf(server)
    const path = folder(t)
    // Of two files, and then of more records in one of them.
    const first = await host(t, path, store, { ledger: { maxFileBytes: 2_000 } })
    const at = join(path, 'ledger')
    const marks = (): string => readdirSync(at).filter((name) => /^shipped-.*\.json$/.test(name)).map((name) =>
      readFileSync(join(at, name), 'utf8')).join('')
    const sizes = (): string => JSON.stringify(Object.fromEntries(readdirSync(at).filter((name) => name.endsWith('.ledger')).sort().map(
      (name) => [name, statSync(join(at, name)).size])))
    for (const count of [7, 2, 1]) {
      await keep(first, records(count))
      while (marks() !== sizes()) await pause(10)
    }
    t.equal(Object.keys(JSON.parse(sizes())).length, 2)
    const written = (): bigint[] => readdirSync(at).map((name) => statSync(join(at, name), { bigint: true }).mtimeNs)
    const before = written()
    // Many passes.
    await pause(300)
    t.same(written(), before, 'and nothing is written where nothing was shipped')
    await first.close()
    const away = { ...store, url: 'postgres://tester@127.0.0.1:9/postgres' }
    const other = await host(t, path, away)
    while (other.ledger.shipping?.unshipped !== 10) await pause(10)
    t.pass('another store has none of it')
  })

  t.test('wrong options are named', async (t) => {
    const path = folder(t)
    const cases: ReadonlyArray<readonly [object, RegExp]> = [
      [{ url: 'mysql://x' }, /state\.usageStore\.url must begin with postgres:/],
      [{}, /state\.usageStore\.url must begin/],
      [{ url: 'postgres://' }, /state\.usageStore\.url must begin/],
      [{ url: 'x postgres://y' }, /state\.usageStore\.url must begin/],
      [{ url: 'postgres://x', schema: 'a b' }, /state\.usageStore\.schema must be a name/],
      [{ url: 'postgres://x', keepMs: 0 }, /state\.usageStore\.keepMs must be/],
      [{ url: 'postgres://x', intervalMs: 0 }, /state\.usageStore\.intervalMs must be/],
      [{ url: 'postgres://x', timeoutMs: 2 ** 31 }, /state\.usageStore\.timeoutMs must be/],
      [{ url: 'postgres://x', password: 'secret' }, /state\.usageStore\.password must be an object/],
      [{ url: 'postgres://x', table: 'a' }, /state\.usageStore\.table is not known/],
    ]
    for (const [usageStore, said] of cases) {
      await t.rejects(openState({ engine: 'lmdb', path, usageStore: Object(usageStore) }), { message: said })
    }
    await t.rejects(openState({ engine: 'memory', usageStore: { url: 'postgres://x' } }), /state\.usageStore needs an engine/)
    t.same(readUsageStore({ url: 'postgresql://x' }), {
      url: 'postgresql://x', password: null, schema: 'llm_gateway', intervalMs: 1_000, timeoutMs: 30_000, keepMs: Infinity,
    })
    t.same(monthOf(Date.parse('2026-12-31T23:59:59Z')), {
      name: 'usage_2026_12', from: '2026-12-01T00:00:00.000Z', to: '2027-01-01T00:00:00.000Z',
    })
  })
})
