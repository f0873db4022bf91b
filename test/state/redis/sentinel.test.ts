/** A Redis whose primary is found through Sentinels that want a password of their own. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { linkRedis, type RedisLink } from '../../../plugins/state/redis/link.js'
import { hearSentinels } from '../../../plugins/state/redis/unheard.js'
import { openState, type StateConfig } from '../../../plugins/state/index.js'
import { command } from '../../bin/terminal.js'
import { freePort } from '../../helpers/free-port.js'
import { yaml } from '../../standalone/run.js'
import { program, withoutRedis } from './server.js'

/** Of a busy machine. */
const patient = { commandTimeoutMs: 5_000 }

/** One of Redis's programs by a configuration file of its own, which a Sentinel writes to; resolves with its port. */
async function launchRedis (t: Test, lines: readonly string[], args: readonly string[] = []): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'llm-gateway-sentinel-'))
  const port = await freePort()
  const file = join(folder, 'redis.conf')
  writeFileSync(file, [`port ${port}`, 'bind 127.0.0.1', `dir ${folder}`, ...lines].join('\n'))
  const child = spawn(program, [file, ...args], { stdio: 'ignore' })
  t.teardown(async () => {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    rmSync(folder, { recursive: true })
  })
  return port
}

function operatorOf (t: Test, port: number, password?: string): Redis {
  const operator = new Redis({ port, ...password !== undefined && { password }, retryStrategy: () => 20 })
  operator.on('error', () => {})
  t.teardown(() => operator.disconnect())
  return operator
}

t.test('the primary is found through Sentinels, with a password for each of the two', { skip: withoutRedis }, async (t) => {
  const rules = ['save ""', 'requirepass of/the@server', 'masterauth of/the@server', 'repl-diskless-sync-delay 0']
  const first = await launchRedis(t, rules)
  const second = await launchRedis(t, [...rules, `replicaof 127.0.0.1 ${first}`])
  const replica = operatorOf(t, second, 'of/the@server')
  while (!/master_link_status:up/.test(await replica.info('replication'))) await pause(50)
  const sentinel = await launchRedis(t, [
    'requirepass of/the@sentinel', `sentinel monitor main 127.0.0.1 ${first} 1`, 'sentinel auth-pass main of/the@server',
    'sentinel down-after-milliseconds main 5000',
  ], ['--sentinel'])
  const watcher = operatorOf(t, sentinel, 'of/the@sentinel')
  while (!String(await watcher.call('SENTINEL', 'replicas', 'main')).includes(`,${second},`)) await pause(50)

  const folder = t.testdir({ server: 'of/the@server', sentinel: 'of/the@sentinel\n', wrong: 'of/nobody' })
  const config = (name: string, own: string | null): StateConfig => ({
    engine: 'redis',
    url: `redis://127.0.0.1:${sentinel}/2`,
    password: { file: join(folder, 'server') },
    sentinel: { name, ...own !== null && { password: { file: join(folder, own) } } },
    ...patient,
  })
  for (const [name, own, said] of [
    ['main', 'wrong', /state\.url was not ready within 500 ms: no Sentinel names the server: WRONGPASS$/],
    ['main', null, /no Sentinel names the server: NOAUTH$/],
    ['other', 'sentinel', /no Sentinel names the server: ERR No such master with that name$/],
  ] as const) {
    await t.rejects(linkRedis(config(name, own), 500), { message: said }, `${name} ${own}`)
  }
  const encrypted = { engine: 'redis', url: 'rediss://127.0.0.1', sentinel: { name: 'main' } } as const
  await t.rejects(linkRedis(encrypted, 500), { message: /no Sentinel names the server: \w+$/ }, 'Sentinels speak TLS where the server does')

  const link: RedisLink = await linkRedis(config('main', 'sentinel'))
  t.teardown(link.close)
  t.equal(await link.ask(async (client) => await client.set('a', 'b')), 'OK')
  await operatorOf(t, first, 'of/the@server').wait(1, 5_000)
  await replica.select(2)
  t.equal(await replica.get('a'), 'b', 'in the database that url names')

  writeFileSync(join(folder, 'sentinel'), 'the next')
  await watcher.call('ACL', 'SETUSER', 'default', '>the next', '<of/the@sentinel')
  // As by a restart of it: both connections go back to it, to hear of handovers.
  const listening = async (): Promise<number> => String(await watcher.call('CLIENT', 'LIST', 'TYPE', 'pubsub')).split('sub=1').length - 1
  while (await listening() < 2) await pause(50)
  await watcher.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
  while (await listening() < 2) await pause(50)
  // It would be made a replica ten seconds later, and takes writes until then.
  await operatorOf(t, first, 'of/the@server').call('ACL', 'SETUSER', 'default', '-replicaof', '-slaveof')
  await watcher.call('SENTINEL', 'failover', 'main')
  const port = async (): Promise<unknown> => await link.ask(async (client) => await client.config('GET', 'port')).catch(() => null)
  while (!String(await port()).includes(String(second))) await pause(50)
  t.equal(await link.ask(async (client) => await client.get('a')), 'b', 'the next primary, known by the next password')

  const state = JSON.stringify({ ...config('main', 'sentinel'), path: join(folder, 'data') })
  writeFileSync(join(folder, 'gateway.yaml'), yaml('https://provider.example', []).replace('{ engine: memory }', state))
  t.match(await command('keys', 'create', '--group', 'chat', '--config', join(folder, 'gateway.yaml')), { code: 0 })
})

t.test('a Sentinel is not taken for the server, and one that hangs or is away is told nobody', { skip: withoutRedis }, async (t) => {
  const server = await launchRedis(t, ['save ""'])
  const rules = [`sentinel monitor main 127.0.0.1 ${server} 1`, 'sentinel down-after-milliseconds main 60000']
  const named = operatorOf(t, await launchRedis(t, rules, ['--sentinel']))
  const other = await launchRedis(t, rules, ['--sentinel'])
  const others = async (): Promise<string> => String(await named.call('SENTINEL', 'sentinels', 'main').catch(() => ''))
  // The client takes no Sentinel that is not connected yet.
  const isKnown = new RegExp(`,${other},.*,flags,sentinel,link-pending-commands,0,`)
  while (!isKnown.test(await others())) await pause(50)
  const link = await linkRedis({
    engine: 'redis', url: `redis://127.0.0.1:${named.options.port}`, sentinel: { name: 'main' }, ...patient,
  })
  t.teardown(link.close)
  await t.rejects(linkRedis({ engine: 'redis', url: `redis://127.0.0.1:${other}`, ...patient }), { code: 'LLM_GATEWAY_OPTION', message: /is a Sentinel/ })
  const operator = operatorOf(t, server)
  const isFoundAgain = async (): Promise<void> => {
    await operator.call('CLIENT', 'KILL', 'TYPE', 'normal')
    while (await link.ask(async (client) => await client.get('a')).catch(() => false) !== null) await pause(20)
  }
  const printed = t.capture(console, 'error')
  const hanging = Number(/process_id:(\d+)/.exec(await named.info('server'))?.[1])
  process.kill(hanging, 'SIGSTOP')
  await isFoundAgain()
  process.kill(hanging, 'SIGCONT')
  named.shutdown().catch(() => {})
  while (named.status === 'ready') await pause(5)
  await isFoundAgain()
  await pause(500)
  t.strictSame(printed(), [])
})

t.test('a Sentinel that tells of another primary takes no connection from this one', { skip: withoutRedis }, async (t) => {
  // Any Redis passes such messages on; a Sentinel sends its own alone.
  const port = await launchRedis(t, ['save ""'])
  const operator = operatorOf(t, port)
  await operator.ping()
  const client = new Redis({ name: 'main', sentinels: [{ host: '127.0.0.1', port }], lazyConnect: true })
  hearSentinels(client)
  const sentinel: Redis = Reflect.get(client, 'connector').connectToSentinel({ host: '127.0.0.1', port })
  t.teardown(() => sentinel.disconnect())
  const heard: string[] = []
  sentinel.on('message', (_: string, text: string) => heard.push(text))
  await sentinel.subscribe('+switch-master')
  for (const name of ['other', 'mainly', 'main']) await operator.publish('+switch-master', `${name} 127.0.0.1 1 127.0.0.1 2`)
  while (heard.length === 0) await pause(5)
  t.strictSame(heard, ['main 127.0.0.1 1 127.0.0.1 2'])
})

t.test('a Sentinel that was away for long or refused to be listened to is heard again', { skip: withoutRedis }, async (t) => {
  const port = await launchRedis(t, ['save ""'])
  const operator = operatorOf(t, port)
  await operator.ping()
  const client = new Redis({ name: 'main', sentinels: [{ host: '127.0.0.1', port }], lazyConnect: true })
  hearSentinels(client)
  const open: (endpoint: object, options: object) => Redis = Reflect.get(client, 'connector').connectToSentinel
  const sentinel = open({ host: '127.0.0.1', port: 1 }, { lazyConnect: true, retryStrategy: () => 1 })
  t.teardown(() => sentinel.disconnect())
  await t.rejects(sentinel.subscribe('+switch-master'), { message: /max retries per request/ }, 'the client gives up')
  sentinel.options.port = port
  const isHeard = async (): Promise<boolean> => String(await operator.pubsub('NUMSUB', '+switch-master')) === '+switch-master,1'
  while (!await isHeard()) await pause(5)
  await operator.call('ACL', 'SETUSER', 'default', 'resetchannels')
  while (!String(await operator.call('ACL', 'LOG')).includes('+switch-master')) await pause(5)
  await operator.call('ACL', 'SETUSER', 'default', 'allchannels')
  while (!await isHeard()) await pause(5)
})

t.test('a primary that is replaced while Sentinels are asked for it ends no client', { skip: withoutRedis }, async (t) => {
  const server = await launchRedis(t, ['save ""'])
  const sentinel = await launchRedis(t, [`sentinel monitor main 127.0.0.1 ${server} 1`], ['--sentinel'])
  for (const port of [server, sentinel]) await operatorOf(t, port).ping()
  const client = new Redis({ name: 'main', sentinels: [{ host: '127.0.0.1', port: sentinel }], lazyConnect: true })
  t.teardown(() => client.disconnect())
  client.on('error', () => {})
  hearSentinels(client)
  const connected = client.connect()
  // What the client does where a Sentinel tells it.
  Reflect.get(client, 'connector').disconnect()
  await connected
  t.equal(await client.get('a'), null)

  client.disconnect()
  await once(client, 'end')
  const left = client.connect()
  client.disconnect()
  await t.rejects(left, { message: 'Connection is closed.' }, 'nor does it go on where it is closed')
})

t.test('what is wrong of it fails the check and the start', async (t) => {
  const redis = { engine: 'redis', url: 'redis://127.0.0.1:9' }
  const file = join(t.testdir({}), 'gateway.yaml')
  for (const [config, said] of [
    [{ ...redis, sentinel: {} }, /state\.sentinel\.name:? is required/],
    [{ ...redis, sentinel: { name: 'a' }, cluster: true }, /state\.sentinel:? has no place beside cluster/],
    [{ ...redis, sentinel: { name: 'a', user: 'b' } }, /state\.sentinel\.user:? is not known/],
    [{ ...redis, sentinel: { name: 'a', password: { file: './none' } } }, /state\.sentinel\.password\.file:? cannot be read: ENOENT/],
    [{ engine: 'lmdb', sentinel: { name: 'a' } }, /state\.sentinel:? belongs to the engine redis/],
  ] as const) {
    await t.rejects(openState(Object(config)), { code: 'LLM_GATEWAY_OPTION', message: said })
    writeFileSync(file, yaml('https://provider.example', []).replace('{ engine: memory }', JSON.stringify(config)))
    t.match((await command('check', '--config', file)).err, said)
  }
})
