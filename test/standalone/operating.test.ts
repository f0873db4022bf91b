/** What docs/operating.md promises whoever runs it: secrets change without a refused request, and a copied folder is a backup. */
import { cpSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { openState } from '../../plugins/state/index.js'
import { launch, originOf, program } from '../helpers/launch.js'
import { startUpstream } from '../helpers/upstream.js'
import { command } from '../bin/terminal.js'
import { folder } from '../state/usage-store.js'
import { callers } from './callers.js'
import { chat, start, status, yaml } from './run.js'

t.test('every secret is rotated without a refused request', async (t) => {
  const upstream = await startUpstream(t)
  const folder = t.testdirName
  const text = (provider: string, secrets: string[]): string => yaml(upstream.url, secrets)
    .replace('credential: upstream-secret', `credential: ${provider}`)
    .replace('engine: memory', `engine: lmdb, path: ${folder}/data`)
  const { gateway, origin, write, file } = await start(t, text('provider-secret-0', ['key-in-file-1']))
  writeFileSync(`${folder}/token`, 'provider-secret-1')
  const keys = async (...args: string[]): Promise<string> => String((await command('keys', ...args, '--config', file)).out[0])
  const credentials = (): string[] => [...new Set(upstream.seen.splice(0).map(({ headers }) => String(headers.authorization)))]

  let secret = await keys('create', '--group', 'chat', '--id', 'first')
  const load = callers(origin, () => secret)
  await load.more()

  await t.test('the key of a caller: a second one, then the first ends', async (t) => {
    const first = secret
    secret = await keys('create', '--group', 'chat', '--id', 'second')
    await load.more()
    await keys('revoke', 'first')
    while (await status(origin, first) !== 401) await pause(20)
    await load.more()
    t.same(load.refused, [])
  })

  await t.test('a key in the file: both stand there for a while', async (t) => {
    write(text('provider-secret-0', ['key-in-file-1', 'key-in-file-2']))
    t.equal(await gateway.reload(), true)
    secret = 'key-in-file-1'
    await load.more()
    secret = 'key-in-file-2'
    await load.more()
    write(text('provider-secret-0', ['key-in-file-2']))
    t.equal(await gateway.reload(), true)
    t.equal(await status(origin, 'key-in-file-1'), 401)
    await load.more()
    t.same(load.refused, [])
  })

  await t.test('the credential of a provider: in the file and a reload, or in a file of its own and nothing', async (t) => {
    t.same(credentials(), ['Bearer provider-secret-0'])
    write(text(`{ file: ${folder}/token }`, ['key-in-file-2']))
    t.equal(await gateway.reload(), true)
    await load.more()
    await load.more()
    credentials()
    await load.more()
    t.same(credentials(), ['Bearer provider-secret-1'])
    writeFileSync(`${folder}/next`, 'provider-secret-2')
    renameSync(`${folder}/next`, `${folder}/token`)
    while (!credentials().includes('Bearer provider-secret-2')) await pause(50)
    await load.more()
    t.same(load.refused, [])
  })
  await load.end()
  t.same(load.refused, [])
})

t.test('a copy of the state folder is a backup: keys, balances and the ledger come back', async (t) => {
  const upstream = await startUpstream(t)
  const folder = t.testdir({})
  const text = (data: string): string => yaml(upstream.url, []).replace('engine: memory', `engine: lmdb, path: ${folder}/${data}`)
  const usage = async (file: string): Promise<unknown> => {
    return (await command('usage', '--by', 'key', '--json', '--config', file)).out.map((line) => JSON.parse(line))
  }
  const file = join(folder, 'gateway.yaml')
  writeFileSync(file, text('data'))

  const secret = await t.test('a gateway serves, and is stopped', async (t) => {
    const { gateway, origin } = await start(t, text('data'))
    const { out: [made = ''] } = await command('keys', 'create', '--group', 'chat', '--id', 'team', '--balance', '100000', '--config', file)
    for (let n = 0; n < 5; n += 1) t.equal(await status(origin, made), 200)
    await gateway.stop()
    writeFileSync(join(folder, 'secret'), made)
  }).then(() => readFileSync(join(folder, 'secret'), 'utf8'))
  const before = await usage(file)
  const listed = (await command('keys', 'list', '--json', '--config', file)).out
  cpSync(join(folder, 'data'), join(folder, 'backup'), { recursive: true })

  await t.test('the folder is lost', async (t) => {
    rmSync(join(folder, 'data'), { recursive: true })
    const { gateway, origin } = await start(t, text('data'))
    t.equal(await status(origin, secret), 401)
    await gateway.stop()
  })

  await t.test('and restored', async (t) => {
    rmSync(join(folder, 'data'), { recursive: true })
    cpSync(join(folder, 'backup'), join(folder, 'data'), { recursive: true })
    t.same(await usage(file), before)
    t.same((await command('keys', 'list', '--json', '--config', file)).out, listed)
    const { gateway, origin, log } = await start(t, text('data'))
    const reply = await chat(origin, secret)
    t.equal(reply.status, 200)
    const id = reply.headers.get('x-request-id')
    await reply.text()
    await gateway.stop()
    t.match(await usage(file), [{ key: 'team', requests: 6 }])

    await t.test('the request id that the caller saw is in the log line and in the ledger', async (t) => {
      t.ok(id)
      t.match(log().split('\n').filter((line) => line.includes(String(id))).join('\n'), '"key_id":"team"')
      const { out } = await command('usage', '--config', file)
      t.equal(out.filter((line) => line.includes(String(id))).length, 1)
    })
  })
})

t.test('a copy under load, of a process that stands still for it, has all that was answered; no request is refused', async (t) => {
  const upstream = await startUpstream(t)
  const folder = t.testdir({})
  const file = join(folder, 'gateway.yaml')
  const text = (data: string): string => yaml(upstream.url, []).replace('engine: memory', `engine: lmdb, path: ${folder}/${data}`)
  writeFileSync(file, text('data'))
  const balance = ['--balance', '1000000000']
  const [secret = ''] = (await command('keys', 'create', '--group', 'chat', '--id', 'team', ...balance, '--config', file)).out
  const gateway = launch(t, program, ['start', '--config', file], { PORT: '0' })
  const load = callers(await originOf(gateway), () => secret)
  const copies: Array<{ path: string, answered: number }> = []
  for (let n = 0; n < 3; n += 1) {
    await load.more()
    const answered = load.answered()
    // As long as a slow disk may take for records whose replies nobody held up.
    await pause(500)
    gateway.process.kill('SIGSTOP')
    while (!/^\d+ \(.*\) T/.test(readFileSync(`/proc/${gateway.process.pid}/stat`, 'utf8'))) await pause(5)
    const path = join(folder, `copy-${n}`)
    cpSync(join(folder, 'data'), path, { recursive: true })
    gateway.process.kill('SIGCONT')
    copies.push({ path, answered })
  }
  await load.more()
  await load.end()
  t.same(load.refused, [])
  gateway.process.kill('SIGTERM')
  await gateway.exited

  for (const { path, answered } of copies) {
    const state = await openState({ engine: 'lmdb', path })
    await state.recovered
    let [records, tokens] = [0, 0]
    for await (const { charged } of state.ledger.read({})) [records, tokens] = [records + 1, tokens + charged]
    t.ok(records >= answered, `${records} records of ${answered} answers and more`)
    t.equal((await state.balances.read('chat', 'team')).spent, tokens, 'each is charged once')
    await state.close()
  }
  await t.test('and serves', async (t) => {
    const { origin } = await start(t, text('copy-2'))
    t.equal(await status(origin, secret), 200)
  })
})

t.test('a ledger file of the last day that cannot be read at the start is told', async (t) => {
  const path = folder(t)
  // A folder, which cannot be read as a file.
  mkdirSync(join(path, 'ledger', '000000000000001-1-0badc0de.ledger'), { recursive: true })
  const { log } = await start(t, yaml('http://127.0.0.1:9', []).replace('engine: memory', `engine: lmdb, path: ${path}`))
  while (!log().includes('usage records of killed processes cannot be read')) await pause(10)
  t.match(log(), /^\{"level":50.*EISDIR/m)
})

t.test('where the provider gave the reply its id, the caller sees that, and the log line has both', async (t) => {
  const upstream = await startUpstream(t)
  const { origin, log } = await start(t, yaml(upstream.url, ['key-a']))
  upstream.queue({ status: 200, headers: { 'x-request-id': 'req_of_the_provider' }, body: {} })
  const reply = await chat(origin, 'key-a')
  await reply.text()
  t.equal(reply.headers.get('x-request-id'), 'req_of_the_provider')
  while (!log().includes('upstream_request_id')) await pause(5)
  t.match(log(), /"id":"[\da-f-]{36}".*"upstream_request_id":"req_of_the_provider"/)
})
