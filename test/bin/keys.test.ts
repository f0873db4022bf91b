import { existsSync, appendFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { editOf } from '../../bin/keys/edit.js'
import { keyOf } from '../../bin/keys/store.js'
import { loadConfig } from '../../plugins/standalone/config.js'
import { memoryKeys } from '../../plugins/state/memory-keys.js'
import { launch, originOf, program } from '../helpers/launch.js'
import { startUpstream } from '../helpers/upstream.js'
import { status, yaml } from '../standalone/run.js'
import { startRedis, withoutRedis } from '../state/redis/server.js'
import { command } from './terminal.js'

/** A configuration whose state is in a folder of the test's. */
function lmdb (t: Test, url = 'http://127.0.0.1:9'): { file: string } {
  const data = join(t.testdirName, 'data')
  const text = yaml(url, ['key-a']).replace('engine: memory', `engine: lmdb, path: ${data}`).replace(
    'groups: {', 'groups: { messages: { protocols: [messages] },'
  )
  return { file: join(t.testdir({ 'gateway.yaml': text, data: {} }), 'gateway.yaml') }
}

t.test('a key is issued, listed, rotated and revoked while the gateway runs', async (t) => {
  const upstream = await startUpstream(t)
  const { file } = lmdb(t, upstream.url)
  const origin = await originOf(launch(t, program, ['start', '--config', file], { PORT: '0' }))
  const keys = async (...args: string[]): Promise<{ code: number, out: string[], err: string }> => await command(
    'keys', ...args, '--config', file
  )
  const comesTo = async (secret: string, wanted: number): Promise<void> => {
    while (await status(origin, secret) !== wanted) await new Promise((resolve) => setTimeout(resolve, 20))
    t.pass(`${wanted}`)
  }

  const { out: [first = ''], err } = await keys('create', '--group', 'chat', '--id', 'team-1')
  t.match(first, /^sk-lgw-team-1-[\w-]{43}$/)
  t.match(err, 'key team-1 of group chat')
  t.equal(await status(origin, first), 200)

  const { out: [second = ''] } = await keys('rotate', 'team-1')
  t.equal(await status(origin, second), 200)
  await comesTo(first, 401)

  t.match((await keys('revoke', 'team-1')).err, 'key team-1 is revoked')
  await comesTo(second, 401)
  const { out } = await keys('list', '--json')
  const [{ limits, ...listed }, ...others] = out.map((line) => JSON.parse(line))
  t.match(listed, { id: 'team-1', group: 'chat', state: 'revoked', expires: null })
  t.strictSame([limits, others], [{}, []])
  t.notMatch(out.join(), /[0-9a-f]{64}/, 'no digest')
})

t.test('keys that are issued where no gateway has its state are told so', async (t) => {
  const { file } = lmdb(t)
  const notice = `${join(t.testdirName, 'data')} is new: a gateway whose state is in another folder does not see its keys`
  t.notMatch((await command('keys', 'create', '--config', file, '--group', 'chat')).err, 'is new')
  rmSync(join(t.testdirName, 'data'), { recursive: true })
  t.match(await command('keys', 'create', '--config', file, '--group', 'caht'), { code: 1, err: 'llm-gateway: there is no group caht' })
  t.notOk(existsSync(join(t.testdirName, 'data')), 'a wrong command leaves nothing')
  t.match((await command('keys', 'create', '--config', file, '--group', 'chat')).err, notice)
  t.notMatch((await command('keys', 'list', '--config', file)).err, 'is new')
})

t.test('a folder that cannot be used is told by its name, to commands and at the start', async (t) => {
  const { file } = lmdb(t)
  const taken = join(t.testdirName, 'taken')
  writeFileSync(taken, 'a file')
  writeFileSync(file, readFileSync(file, 'utf8').replace(join(t.testdirName, 'data'), taken))
  for (const args of [['keys', 'list'], ['start']]) {
    const err = `llm-gateway: the folder ${taken} of the state cannot be used: EEXIST`
    t.match(await command(...args, '--config', file), { code: 1, err })
  }
  writeFileSync(file, readFileSync(file, 'utf8').replace(taken, join(taken, 'data')))
  const { err } = await command('keys', 'list', '--config', file)
  t.match(err, `llm-gateway: the folder ${join(taken, 'data')} of the state cannot be used: ENOTDIR`)
  t.notMatch(err, 'is new', 'what was not made is not told as new')
})

t.test('a key may have limits, labels and an end', async (t) => {
  const { file } = lmdb(t)
  const {
    out: [secret = ''],
  } = await command('keys', 'create', '--config', file, '--group', 'chat', '--label', 'team=search', '--label', 'env=prod',
    '--expires', '2020-01-01T00:00:00Z',
    '--balance', '0', '--requests-per-minute', '1', '--tokens-per-minute', '2', '--concurrency', '3')
  t.match(secret, /^sk-lgw-[0-9a-f]{10}-/)
  await command('keys', 'create', '--config', file, '--group', 'chat', '--id', 'b', '--expires', '2999-01-01')
  const { out } = await command('keys', 'list', '--config', file, '--json')
  t.match(out.map((line) => JSON.parse(line)).sort((a, b) => a.state < b.state ? -1 : 1), [
    { id: 'b', labels: {}, state: 'active', expires: '2999-01-01T00:00:00.000Z', limits: {} },
    {
      labels: { team: 'search', env: 'prod' },
      state: 'expired',
      created: String,
      limits: { balance: 0, requestsPerMinute: 1, tokensPerMinute: 2, concurrency: 3 },
    },
  ])
})

t.test('what a program reads is JSON, each time with the whole key', async (t) => {
  const { file } = lmdb(t)
  const keys = async (...args: string[]): Promise<Record<string, unknown>> => {
    const { code, out, err } = await command('keys', ...args, '--json', '--config', file)
    t.match({ code, err, lines: out.length }, { code: 0, err: '', lines: 1 }, args.join(' '))
    return JSON.parse(out[0] ?? '')
  }
  const whole = { id: 'a', group: 'chat', state: 'active', expires: null, created: String, limits: { balance: 5 }, labels: { team: 'x' } }
  const created = await keys('create', '--group', 'chat', '--id', 'a', '--balance', '5', '--label', 'team=x')
  t.match(created, { ...whole, secret: /^sk-lgw-a-/ })
  const rotated = await keys('rotate', 'a')
  t.match(rotated, { ...whole, secret: /^sk-lgw-a-/ })
  t.not(rotated['secret'], created['secret'])
  const { secret, ...told } = created
  t.strictSame(await keys('update', 'a'), told, 'nothing named, nothing changed')
  t.strictSame(await keys('revoke', 'a'), { ...told, state: 'revoked' })
})

t.test('a table for people, in the order of the ids', async (t) => {
  const { file } = lmdb(t)
  const keys = async (...args: string[]): Promise<string[]> => (await command('keys', ...args, '--config', file)).out
  t.same(await keys('list'), ['id  group  state  expires  limits  labels'])
  await keys('create', '--group', 'messages', '--id', 'zebra')
  await keys(
    'create', '--group', 'chat', '--id', 'ant', '--expires', '2999-01-01', '--balance', '5', '--concurrency', '2', '--label', 'a=1',
    '--label', 'b=2'
  )
  t.same(await keys('list'), [
    'id     group     state   expires                   limits                   labels',
    'ant    chat      active  2999-01-01T00:00:00.000Z  concurrency=2 balance=5  a=1,b=2',
    'zebra  messages  active  never                     -                        -',
  ])
  t.same((await keys('list', '--group', 'messages')).map((line) => line.slice(0, 5)), ['id   ', 'zebra'])
})

t.test('budgets of a key are said as they are shown, replace those before, and go with none', async (t) => {
  const { file } = lmdb(t)
  writeFileSync(file, `${readFileSync(file, 'utf8')}\nprices: { models: { gpt-5: { input: 1 } } }\n`)
  const keys = async (...args: string[]): Promise<string[]> => (await command('keys', ...args, '--config', file)).out
  const limits = async (): Promise<unknown> => JSON.parse((await keys('list', '--group', 'chat', '--json'))[0] ?? '').limits
  await keys(
    'create', '--group', 'chat', '--id', 'a', '--budget', '0.5/month', '--budget', '7tokens/day Europe/Berlin', '--budget', '1e-7/total',
    '--balance', '5'
  )
  t.strictSame(await limits(), {
    balance: 5,
    budgets: [
      { cost: 0.5, period: 'month' }, { tokens: 7, period: 'day', timezone: 'Europe/Berlin' }, { cost: 1e-7, period: 'total' },
    ],
  })
  await keys('create', '--group', 'messages', '--id', 'b', '--budget', '2/hour')
  t.match((await keys('list')).slice(1), [
    / {2}balance=5 budgets=0\.5\/month,7tokens\/day Europe\/Berlin,1e-7\/total {2}/, / {2}budgets=2\/hour {2}/,
  ])
  t.equal((await command('keys', 'update', 'a', '--budget', '8tokens/day', '--config', file)).err, 'key a is changed')
  t.strictSame(await limits(), { balance: 5, budgets: [{ tokens: 8, period: 'day' }] })
  await keys('update', 'a', '--balance', '6')
  t.strictSame(await limits(), { balance: 6, budgets: [{ tokens: 8, period: 'day' }] }, 'not named')
  await keys('update', 'a', '--budget', 'none')
  t.strictSame(await limits(), { balance: 6 })
})

t.test('a budget that is wrong is told by its option, and one in money where nothing has a price', async (t) => {
  const { file } = lmdb(t)
  const create = async (...budgets: string[]) => await command(
    'keys', 'create', '--group', 'chat', '--id', 'a', ...budgets.flatMap((budget) => ['--budget', budget]), '--config', file
  )
  for (const [budgets, said] of [
    [['5'], /^llm-gateway: --budget must be such as 5\/month or "1000tokens\/day Europe\/Berlin", not 5$/m],
    [['5 tokens/day'], /--budget must be such as/],
    [['0x5/day'], /--budget must be such as/],
    [['none', '5/day'], /--budget must be such as .*, not none/],
    [['5/year'], /--budget must be for one of hour, day, week, month, total, not year/],
    [['5.5.5/day'], /--budget\[0\]\.cost must be a number above 0/],
    [['1tokens/day', '1.5tokens/day UTC'], /--budget\[1\]\.tokens must be a whole number of at least 1/],
    [['1tokens/day Mars/Base'], /--budget\[0\]\.timezone is not a time zone/],
    [['1tokens/day', '2tokens/day UTC'], /--budget\[1\] has the unit, the period and the time zone of another one/],
  ] as const) t.matchOnly(await create(...budgets), { code: 2, out: [], err: said }, budgets.join())
  const unpriced = { code: 1, out: [], err: 'a budget in money needs prices: without a price list nothing costs anything' }
  t.matchOnly(await create('5/day'), unpriced)
  t.match(await create('5tokens/day'), { code: 0 })
  t.matchOnly(await command('keys', 'update', 'a', '--budget', '5/day', '--config', file), unpriced)
  appendFileSync(file, '\nprices: { currency: EUR }\n')
  t.matchOnly(await command('keys', 'update', 'a', '--budget', '5/day', '--config', file), unpriced)
})

t.test('a list without a key says so, and whether there is such a group', async (t) => {
  const { file } = lmdb(t)
  const list = async (...args: string[]) => await command('keys', 'list', ...args, '--config', file)
  t.match(await list(), { code: 0, err: /^no key is issued; keys of the configuration are not listed$/m })
  t.matchOnly(await list('--json', '--group', 'chat'), { code: 0, out: [], err: /^no key of group chat is issued; keys of the conf/m })
  t.matchOnly(await list('--group', 'caht'), { code: 1, out: [], err: /there is no group caht; did you mean chat\?/ })
  await command('keys', 'create', '--group', 'messages', '--id', 'a', '--config', file)
  t.match(await list('--group', 'chat'), { code: 0, err: /^no key of group chat is issued/ })
  writeFileSync(file, readFileSync(file, 'utf8').replace('messages: { protocols: [messages] },', ''))
  t.match(await list('--group', 'messages'), { code: 0, out: [/^id/, /^a {3}messages \(unknown\) {2}active/], err: '' }, 'a group that is gone')
})

t.test('a new secret for a key that has ended does not begin it anew, and the command says so', async (t) => {
  const { file } = lmdb(t)
  const keys = async (...args: string[]): Promise<string> => (await command('keys', ...args, '--config', file)).err
  await keys('create', '--group', 'chat', '--id', 'a')
  t.match(await keys('create', '--group', 'chat', '--id', 'late', '--expires', '2020-01-01'), /not shown again, and it has expired already:$/)
  t.equal(await keys('rotate', 'a'), 'key a has another secret, which is not shown again:')
  await keys('revoke', 'a')
  t.equal(await keys('rotate', 'a'), 'key a has another secret, which is not shown again, and is still revoked:')
  await keys('update', 'a', '--enable', '--expires', '2020-01-01')
  t.equal(await keys('rotate', 'a'), 'key a has another secret, which is not shown again, and is still expired:')
})

t.test('an update changes what it names, and takes away what it names as none', async (t) => {
  const { file } = lmdb(t)
  const keys = async (...args: string[]): Promise<string> => (await command('keys', ...args, '--config', file)).err
  const now = async (): Promise<unknown> => JSON.parse((await command('keys', 'list', '--json', '--config', file)).out[0] ?? '')
  await keys(
    'create', '--group', 'chat', '--id', 'a', '--balance', '5', '--concurrency', '2', '--expires', '2999-01-01', '--label', 'a=1',
    '--label', 'b=2'
  )
  t.equal(await keys('update', 'a', '--balance', '9', '--label', 'b=3'), 'key a is changed')
  t.equal(await keys('update', 'a', '--balance', '9'), 'key a is as it was')
  t.match(await now(), {
    group: 'chat', state: 'active', expires: '2999-01-01T00:00:00.000Z', limits: { balance: 9, concurrency: 2 }, labels: { a: '1', b: '3' },
  })
  await keys('update', 'a', '--balance', 'none', '--expires', 'never', '--label', 'a=', '--group', 'messages', '--disable')
  t.strictSame(Object(await now()).limits, { concurrency: 2 })
  t.strictSame(Object(await now()).labels, { b: '3' })
  t.match(await now(), { group: 'messages', state: 'revoked', expires: null })
  await keys('update', 'a', '--expires', '2020-01-01')
  t.match(await now(), { state: 'revoked' }, 'still')
  await keys('update', 'a', '--enable')
  t.match(await now(), { state: 'expired' })
})

t.test('an update that others come before takes back nothing of theirs that it does not name', async (t) => {
  const store = memoryKeys()
  await store.create({
    id: 'a', group: 'chat', digest: 'd', disabled: false, expiresAt: null, limits: { balance: 5 }, label: 'a=1', createdAt: 1,
  })
  const before = await keyOf(store, 'a', loadConfig(lmdb(t).file, {}))
  await store.update('a', { disabled: true, group: 'messages', expiresAt: 2, label: 'a=2' })
  await store.update('a', editOf(before, { balance: '9', enable: false, disable: false }))
  t.match(await store.read('a'), { disabled: true, group: 'messages', expiresAt: 2, label: 'a=2', limits: { balance: 9 } })
  await store.update('a', editOf(before, { label: ['b=3'], enable: false, disable: false }))
  t.match(await store.read('a'), { disabled: true, limits: { balance: 9 } })
})

t.test('what cannot be done is said, with 1; what was typed wrong, with 2', async (t) => {
  const { file } = lmdb(t)
  const taken = ['create', '--group', 'chat', '--id', 'taken']
  await command('keys', ...taken, '--config', file)
  const cases: ReadonlyArray<readonly [args: string[], code: number, said: RegExp]> = [
    [[], 2, /keys takes create, list, update, rotate, revoke/],
    [['constructor'], 2, /keys takes create/],
    [['create'], 2, /needs --group/],
    [['create', 'a', '--group', 'chat'], 2, /Unexpected argument 'a'/],
    [['create', '--group', 'chat', '--id', 'a/b'], 2, /--id must be/],
    [['create', '--group', 'chat', '--expires', 'soon'], 2, /--expires must be a date/],
    [['create', '--group', 'chat', '--expires', '2030-01-01T00:00'], 2, /--expires must be a date/],
    [['create', '--group', 'chat', '--label', 'a'], 2, /--label must be NAME=VALUE/],
    [['create', '--group', 'chat', '--label', 'a=b,c=d'], 2, /--label must be NAME=VALUE/],
    [['create', '--group', 'chat', '--label', 'a==b'], 2, /--label must be NAME=VALUE/],
    [['create', '--group', 'chat', '--label', 'a=b\nc'], 2, /--label must be NAME=VALUE/],
    [['create', '--group', 'chat', '--label', `a=${'b'.repeat(129)}`], 2, /of up to 64 and 128 characters/],
    [['create', '--group', 'chat', ...Array.from({ length: 17 }, (_, n) => ['--label', `a${n}=b`]).flat()], 2, /may have 16 labels/],
    [['create', '--group', 'chat', '--expires', '2030-02-30'], 2, /--expires must be a date .*, not 2030-02-30/],
    [['create', '--group', 'chat', '--balance', '-1'], 2, /balance/],
    [['create', '--group', 'chat', '--concurrency', '0'], 2, /--concurrency must be a whole number of at least 1/],
    [['create', '--group', 'chat', '--balance', '1e3'], 2, /--balance must be a whole number of at least 0/],
    [['create', '--group', 'toString'], 1, /there is no group toString/],
    [taken, 1, /there is a key taken already/],
    [['create', '--group', 'chat', '--id', 'key-a'], 1, /there is a key key-a already/],
    [['list', '--balance', '1'], 2, /Unknown option '--balance'/],
    [['revoke'], 2, /revoke takes the id of one key/],
    [['revoke', 'a', 'b'], 2, /revoke takes the id of one key/],
    [['revoke', 'a'], 1, /there is no key a/],
    [['rotate', 'a'], 1, /there is no key a/],
    [['rotate', 'key-a'], 1, /key key-a is in the configuration: change it there/],
    [['update', 'key-a', '--balance', '1'], 1, /key key-a is in the configuration/],
    [['revoke', 'key-a'], 1, /key key-a is in the configuration/],
    [['update'], 2, /update takes the id of one key/],
    [['update', 'a'], 1, /there is no key a/],
    [['update', 'taken', '--group', 'toString'], 1, /there is no group toString/],
    [['update', 'taken', '--enable', '--disable'], 2, /exclude each other/],
  ]
  for (const [args, code, said] of cases) {
    t.matchOnly(await command('keys', ...args, '--config', file), { code, out: [], err: said }, args.join(' '))
  }
})

t.test('state that ends with the process is no place for them', async (t) => {
  const file = join(t.testdir({ 'gateway.yaml': yaml('http://127.0.0.1:9', []) }), 'gateway.yaml')
  t.match(
    await command('keys', 'list', '--config', file), { code: 1, err: /gateway\.yaml: state\.engine: is memory/ },
    'it names the file: it may be the demo, for want of another'
  )
  t.match(await command('usage', '--config', file), { code: 1, err: /gateway\.yaml: state\.engine: is memory/ })
})

t.test('what a store refuses is told as it says it', { skip: withoutRedis }, async (t) => {
  const server = await startRedis()
  t.teardown(server.stop)
  const redis = new Redis(server.url)
  t.teardown(() => redis.disconnect())
  const text = yaml('http://127.0.0.1:9', ['key-a']).replace('engine: memory', `engine: redis, url: "${server.url}", commandTimeoutMs: 5000`)
  const file = join(t.testdir({ 'gateway.yaml': text }), 'gateway.yaml')
  await redis.replicaof('127.0.0.1', 9)
  const { code, err } = await command('keys', 'create', '--group', 'chat', '--id', 'k', '--config', file)
  t.equal(code, 1)
  t.match(err, /^llm-gateway: the state store failed: .*READONLY/m)
})
