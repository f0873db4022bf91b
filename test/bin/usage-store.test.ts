import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { startPostgres, withoutPostgres } from '../state/postgres-server.js'
import { agrees, arrive, folder, host, keep, record, storeOf } from '../state/usage-store.js'
import { yaml } from '../standalone/run.js'
import { command } from './terminal.js'

t.test('usage of all hosts', { skip: withoutPostgres }, async (t) => {
  const server = await startPostgres()
  t.teardown(server.stop)
  const store = storeOf(server)
  const [one, two] = [folder(t), folder(t)]
  const usd = { cost: '0.25', currency: 'USD', costParts: { input: '0.25' } } as const
  const mine = [
    record({
      id: 'z',
      time: Date.parse('2026-03-28T23:30:00Z'),
      labels: { team: 'search', app: 'a' },
      upstreamModel: 'm-2',
      price: '0123',
      serviceTier: 'flex',
      chargedCost: 5,
      late: ['group'],
      lateBuckets: [],
      lateBalances: ['group'],
      ...usd,
    }),
    record({ time: Date.parse('2026-03-29T00:07:00.001Z'), labels: { team: 'search' }, outcome: 'client_abort', ...usd }),
    record({
      time: Date.parse('2026-03-31T22:30:00Z'), key: 'other', labels: { team: 'it\'s "b"' }, ...usd, cost: null, costParts: { input: null },
    }),
  ]
  const theirs = [
    record({
      time: Date.parse('2026-03-31T23:00:00Z'),
      group: null,
      key: null,
      model: null,
      ...usd,
      cost: '0.000000005',
      currency: 'EUR',
      costParts: { input: '0.000000005', output: null },
    }),
    record({ time: Date.parse('2026-04-02T00:00:00Z'), protocol: 'responses', bill: { startedAt: 5, counts: { search: 1 } }, ...usd }),
  ]
  const { cost: _, currency: __, costParts: ___, ...unpriced } = record({ time: Date.parse('2026-04-03T00:00:00Z') })
  const all = [...mine, ...theirs, unpriced]
  for (const [path, some] of [[one, mine], [two, [...theirs, unpriced]]] as const) await keep(await host(t, path, store), some)
  await arrive(server, store, all)
  await agrees(t, server, store, all)
  const gateway = join(one, 'gateway.yaml')
  const state = (url: string): string => `engine: lmdb, path: ${one}, usageStore: { url: "${url}", schema: ${store.schema} }`
  const config = (url: string): string => yaml('http://127.0.0.1:9', [], 'prices: { models: { m: { input: 1 } } }').replace(
    'engine: memory', state(url)
  )
  writeFileSync(gateway, config(server.url))
  const usage = async (...args: string[]): Promise<string[]> => {
    const { code, out, err } = await command('usage', '--config', gateway, ...args)
    t.equal(`${code} ${err}`, '0 ', args.join(' '))
    return out
  }

  /** A host that has all of the records in its own files. */
  const merged = async (): Promise<{ file: string }> => {
    const path = folder(t)
    const file = join(path, 'gateway.yaml')
    writeFileSync(file, yaml('http://127.0.0.1:9', []).replace('engine: memory', `engine: lmdb, path: ${path}`))
    await keep(await host(t, path, storeOf(server)), all)
    return { file }
  }

  const connectionsOf = async (role: string): Promise<number> => {
    return (await server.ask('SELECT FROM pg_stat_activity WHERE usename = $1', [role])).length
  }

  t.test('the records themselves, as they were written', async (t) => {
    t.strictSame((await usage()).map((line) => JSON.parse(line)), JSON.parse(JSON.stringify(all)))
    const ids = async (...args: string[]): Promise<string[]> => (await usage(...args)).map((line) => JSON.parse(line).id)
    const [a, b, c, d, e, f] = all.map(({ id }) => id)
    t.same(await ids('--from', '2026-03-31', '--to', '2026-04-03'), [c, d, e])
    t.same(await ids('--key', 'ci', '--key', 'other', '--outcome', 'ok'), [a, c, e, f])
    t.same(await ids('--model', 'null'), [d])
    t.same(await ids('--protocol', 'responses', '--group', 'chat'), [e])
    t.same(await ids('--outcome', 'client_abort'), [b])
    t.same(await ids('--local'), [a, b, c], 'of this host alone')
  })

  t.test('sums are those of the files of all hosts, whatever is asked', async (t) => {
    const { file } = await merged()
    const times = [[], ['--from', '2026-03-29', '--to', '2026-04-02T00:00:00Z'], ['--from', '2026-03-29T00:07:00.001Z'], [
      '--to', '2026-03-29T00:07:00.001Z',
    ]]
    for (const by of ['group', 'key', 'model,protocol', 'day', 'month', 'label:team', 'label:app,day', 'label:none']) {
      for (const time of times) {
        const args = ['--by', by, ...time, '--timezone', 'Asia/Kathmandu', '--json']
        const { out } = await command('usage', '--config', file, ...args)
        t.strictSame(await usage(...args), out, args.join(' '))
      }
    }
    t.match((await usage('--by', 'month')).at(-1), /^all .* 0\.000000005 EUR \+ 0\.75 USD +2$/)
  })

  t.test('what it would have cost, and models without a price', async (t) => {
    const list = join(one, 'other.yaml')
    writeFileSync(list, 'models: { m: { input: 1, cache_read: 1, output: 1, reasoning: 1, each: { search: 1 } } }')
    t.match((await usage('reprice', '--prices', list, '--json')).map((line) => JSON.parse(line)), [{
      requests: 6, repriced: { USD: '1.00004' },
    }])
    const { file } = await merged()
    for (const by of ['model,day', 'label:team', 'label:none']) {
      const args = ['reprice', '--prices', list, '--by', by, '--from', '2026-03-29', '--timezone', 'Europe/Berlin', '--json']
      t.strictSame(await usage(...args), (await command('usage', ...args, '--config', file)).out, `as from the files: ${by}`)
    }
    const { code, out } = await command('prices', 'check', '--config', gateway)
    t.match({ code, out }, { code: 1, out: ['{"model":"m","requests":5}', '{"model":"null","requests":1}'] }, 'the row of m has no output')
  })

  t.test('whoever may not read is told so, and keeps no connection', async (t) => {
    await server.ask('CREATE ROLE nobody LOGIN')
    await server.ask(`GRANT USAGE ON SCHEMA ${store.schema} TO nobody`)
    writeFileSync(gateway, config(server.url.replace('tester', 'nobody')))
    t.teardown(() => writeFileSync(gateway, config(server.url)))
    for (const args of [['usage'], ['usage', '--by', 'day'], ['prices', 'check']]) {
      const { code, err } = await command(...args, '--config', gateway)
      t.match({ code, err }, { code: 1, err: /permission denied/ }, args.join(' '))
      for (let looks = 0; looks < 100 && await connectionsOf('nobody') > 0; looks += 1) await pause(20)
      t.equal(await connectionsOf('nobody'), 0)
    }
  })

  t.test('of a month that was dropped the sums are told all the same', async (t) => {
    const asked = [['--by', 'month'], ['--by', 'key,day', '--from', '2026-03-28T23:15:00Z', '--to', '2026-04-01T00:00:00Z']]
    const before = await Promise.all(asked.map(async (args) => await usage(...args)))
    await server.ask(`DROP TABLE ${store.schema}.usage_2026_03`)
    for (const [at, args] of asked.entries()) t.strictSame(await usage(...args), before[at], args.join(' '))
    t.equal((await usage()).length, 2, 'its records are gone')
  })

  t.test('a store that no gateway has connected to yet, and an address that cannot be read, are said', async (t) => {
    const told = async (text: string, ...args: string[]): Promise<string> => {
      writeFileSync(gateway, text)
      const { code, out, err } = await command('usage', '--config', gateway, ...args)
      t.match({ code, out }, { code: 1, out: [] })
      return err
    }
    const fresh = config(server.url).replace(`schema: ${store.schema}`, 'schema: fresh')
    for (const args of [[], ['--by', 'model']]) {
      t.match(await told(fresh, ...args), /the usage store cannot be asked: .*no gateway has connected to it yet; --local reads/, args.join(' '))
    }
    t.match(await told(config('postgres://tester:a#b@127.0.0.1:9/postgres')), /state\.usageStore\.url.*percent-encoded/)
  })

  t.test('a store that cannot be asked is said, and what this host has can be', async (t) => {
    writeFileSync(gateway, config('postgres://tester:secret@127.0.0.1:9/postgres'))
    const { code, out, err } = await command('usage', '--config', gateway, '--by', 'model')
    t.matchOnly({ code, out, err }, { code: 1, out: [], err: /the usage store cannot be asked: .*ECONNREFUSED.*; --local reads/ })
    t.notMatch(err, 'secret')
    t.equal((await usage('--local')).length, 3)
  })
})
