import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openState } from '../../plugins/state/index.js'
import { launch, originOf, program } from '../helpers/launch.js'
import { startUpstream } from '../helpers/upstream.js'
import { status, yaml } from '../standalone/run.js'
import { command } from './terminal.js'

/** A configuration whose state is in a folder of the test's. */
function lmdb (t: Test, url = 'http://127.0.0.1:9'): { file: string, data: string } {
  const folder = t.testdir({})
  const data = join(folder, 'data')
  const text = yaml(url, ['key-a']).replace('engine: memory', `engine: lmdb, path: ${data}`)
  return { file: join(t.testdir({ 'gateway.yaml': text }), 'gateway.yaml'), data }
}

t.test('a key is issued, listed, rotated and revoked while the gateway runs', async (t) => {
  const upstream = await startUpstream(t)
  const { file } = lmdb(t, upstream.url)
  const origin = await originOf(launch(t, program, ['start', '--config', file], { PORT: '0' }))
  const keys = async (...args: string[]): Promise<{ code: number, out: string[], err: string }> => await command('keys', ...args, '--config', file)
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
  const { out } = await keys('list')
  t.match(out.map((line) => JSON.parse(line)), [{ id: 'team-1', group: 'chat', state: 'revoked', expires: null, limits: {} }])
  t.notMatch(out.join(), /[0-9a-f]{64}/, 'no digest')
})

t.test('a key may have limits, a label and an end', async (t) => {
  const { file } = lmdb(t)
  const { out: [secret = ''] } = await command('keys', 'create', '--config', file, '--group', 'chat', '--label', 'the team', '--expires', '2020-01-01T00:00:00Z',
    '--balance', '0', '--requests-per-minute', '1', '--tokens-per-minute', '2', '--concurrency', '3')
  t.match(secret, /^sk-lgw-[0-9a-f]{10}-/)
  await command('keys', 'create', '--config', file, '--group', 'chat', '--id', 'b', '--expires', '2999-01-01')
  const { out } = await command('keys', 'list', '--config', file)
  t.match(out.map((line) => JSON.parse(line)).sort((a, b) => a.state < b.state ? -1 : 1), [
    { id: 'b', label: null, state: 'active', expires: '2999-01-01T00:00:00.000Z', limits: {} },
    { label: 'the team', state: 'expired', created: String, limits: { balance: 0, requestsPerMinute: 1, tokensPerMinute: 2, concurrency: 3 } },
  ])
})

t.test('what cannot be done is said, with 1; what was typed wrong, with 2', async (t) => {
  const { file } = lmdb(t)
  const taken = ['create', '--group', 'chat', '--id', 'taken']
  await command('keys', ...taken, '--config', file)
  const cases: ReadonlyArray<readonly [args: string[], code: number, said: RegExp]> = [
    [[], 2, /create, list, revoke or rotate/],
    [['constructor'], 2, /create, list, revoke or rotate/],
    [['create'], 2, /needs --group/],
    [['create', 'a', '--group', 'chat'], 2, /create takes no id/],
    [['create', '--group', 'chat', '--id', 'a/b'], 2, /--id must be/],
    [['create', '--group', 'chat', '--expires', 'soon'], 2, /--expires must be a date/],
    [['create', '--group', 'chat', '--balance', '-1'], 2, /balance/],
    [['create', '--group', 'chat', '--concurrency', '0'], 2, /--concurrency must be a whole number of at least 1/],
    [['create', '--group', 'chat', '--balance', '1e3'], 2, /--balance must be a whole number of at least 0/],
    [['create', '--group', 'toString'], 1, /there is no group toString/],
    [taken, 1, /there is a key taken already/],
    [['create', '--group', 'chat', '--id', 'key-a'], 1, /there is a key key-a already/],
    [['revoke'], 2, /revoke takes the id of one key/],
    [['revoke', 'a', 'b'], 2, /revoke takes the id of one key/],
    [['revoke', 'a'], 1, /there is no key a/],
    [['rotate', 'a'], 1, /there is no key a/],
  ]
  for (const [args, code, said] of cases) t.match(await command('keys', ...args, '--config', file), { code, out: [], err: said }, args.join(' '))
})

t.test('state that ends with the process is no place for them', async (t) => {
  const file = join(t.testdir({ 'gateway.yaml': yaml('http://127.0.0.1:9', []) }), 'gateway.yaml')
  t.match(await command('keys', 'list', '--config', file), { code: 1, err: /state\.engine is memory/ })
  t.match(await command('usage', '--config', file), { code: 1, err: /state\.engine is memory/ })
})

t.test('the usage ledger as JSON lines', async (t) => {
  const { file, data } = lmdb(t)
  const state = await openState({ engine: 'lmdb', path: data })
  const leaves = { input: 1, cache_read: 0, cache_write_5m: 0, cache_write_1h: 0, cache_write: 0, tool_input: 0, output: 2, reasoning: 0 }
  // Whole files are passed over that were ended before the range or begun after it: this one was written today.
  const days = ['2026-01-01', '2999-01-01', '2999-01-02']
  for (const day of days) {
    const record = { time: Date.parse(day), id: day, key: 'a', group: 'chat', protocol: 'messages', model: 'm', outcome: 'ok', charged: 3, late: [], ...leaves } as const
    await state.ledger.append(record)
  }
  await state.close()

  const ids = async (...args: string[]): Promise<string[]> => {
    const { code, out } = await command('usage', '--config', file, ...args)
    t.equal(code, 0)
    return out.map((line) => JSON.parse(line).id)
  }
  t.same(await ids(), days)
  t.same(await ids('--from', '2026-01-02'), days.slice(1))
  t.same(await ids('--to', '2999-01-01'), days.slice(0, 1))
  t.match((await command('usage', '--config', file)).err, '100 % read')
  t.match(await command('usage', '--config', file, '--from', 'then'), { code: 2, err: /--from must be a date/ })
})
