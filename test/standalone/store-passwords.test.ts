/** What docs/operating.md promises of the passwords of Redis and PostgreSQL: rotated without a restart and without a refused request. */
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { command } from '../bin/terminal.js'
import { startUpstream } from '../helpers/upstream.js'
import { openState } from '../../plugins/state/index.js'
import { startPostgres, withoutPostgres } from '../state/postgres-server.js'
import { startRedis, withoutRedis } from '../state/redis/server.js'
import { callers } from './callers.js'
import { start, status, yaml } from './run.js'

/** As a mounted secret changes: another file in its place. */
function put (file: string, password: string): void {
  writeFileSync(`${file}.next`, `${password}\n`)
  renameSync(`${file}.next`, file)
}

function secretFile (t: Test, password: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'llm-gateway-password-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'password')
  put(file, password)
  return file
}

t.test('of Redis: both hold for a while', { skip: withoutRedis }, async (t) => {
  const server = await startRedis()
  t.teardown(server.stop)
  const operator = new Redis(server.url)
  t.teardown(() => operator.disconnect())
  const acl = async (...rules: string[]): Promise<void> => { await operator.call('ACL', 'SETUSER', 'gateway', ...rules) }
  await acl('on', '>one:/@50%off', '~*', '&*', '+@all')
  const upstream = await startUpstream(t)
  const file = secretFile(t, 'one:/@50%off')
  const folder = join(file, '..')
  const state = `engine: redis, url: "redis://gateway@127.0.0.1:${server.port}", password: { file: ${file} }, path: ${folder}/data, commandTimeoutMs: 5000`
  const { origin, file: config } = await start(t, yaml(upstream.url, []).replace('engine: memory', state)
    .replace('upstream: main }', 'upstream: main, limits: { requestsPerMinute: 1000000 } }'))
  const secret = String((await command('keys', 'create', '--group', 'chat', '--id', 'team', '--config', config)).out[0])
  const load = callers(origin, () => secret)
  await load.more()

  await acl('>two')
  put(file, 'two')
  await acl('<one:/@50%off')
  await load.more()
  t.same(load.refused, [], 'connections live on')
  await load.end()

  t.equal(await operator.call('CLIENT', 'KILL', 'USER', 'gateway'), 2)
  while (await status(origin, secret) !== 200) await pause(20)
  t.match(await operator.call('CLIENT', 'LIST'), /user=gateway/, 'and new ones know the new password')
  t.equal((await command('keys', 'list', '--config', config)).code, 0, 'commands, too')

  rmSync(file)
  await operator.call('CLIENT', 'KILL', 'USER', 'gateway')
  while (await status(origin, secret) !== 200) await pause(20)
  t.pass('while the file is away, the last one is used')
})

t.test('of PostgreSQL: reports wait for a moment, and no request', { skip: withoutPostgres }, async (t) => {
  const server = await startPostgres()
  t.teardown(server.stop)
  await server.ask("CREATE ROLE gateway LOGIN PASSWORD 'one'")
  await server.ask('GRANT CREATE ON DATABASE postgres TO gateway')
  const rules = join(server.dir, 'data', 'pg_hba.conf')
  writeFileSync(rules, `host all gateway 127.0.0.1/32 scram-sha-256\n${readFileSync(rules, 'utf8')}`)
  await server.ask('SELECT pg_reload_conf()')
  const upstream = await startUpstream(t)
  const file = secretFile(t, 'one')
  const folder = join(file, '..')
  const url = server.url.replace('tester', 'gateway:long-gone')
  const state = `engine: lmdb, path: ${folder}/data, usageStore: { url: "${url}", password: { file: ${file} }, intervalMs: 50 }`
  const { origin } = await start(t, yaml(upstream.url, ['key-a']).replace('engine: memory', state))
  const shipped = async (): Promise<number> => {
    const [row] = await server.ask<{ count: string }>('SELECT count(*) AS count FROM llm_gateway.usage').catch(() => [])
    return Number(row?.count ?? 0)
  }
  const load = callers(origin, () => 'key-a')
  while (await shipped() === 0) await pause(20)

  await server.ask("ALTER ROLE gateway PASSWORD 'two'")
  await server.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'gateway'")
  await load.more()
  put(file, 'two')
  await load.more()
  await load.end()
  t.same(load.refused, [])
  while (await shipped() < load.answered()) await pause(50)
  t.equal(await shipped(), load.answered(), 'each record is there, once')
})

t.test('a password or an address that cannot be used fails the check and the start', async (t) => {
  const folder = t.testdir({ empty: ' \n' })
  const redis = { engine: 'redis', url: 'redis://127.0.0.1:9' } as const
  const usageStore = { url: 'postgres://127.0.0.1:9/db' }
  const unread = 'cannot be read: in a name or password, all but letters and digits is percent-encoded, such as # as %23'
  const wrong = [
    [{ ...redis, password: { file: `${folder}/none` } }, 'state.password.file', 'cannot be read: ENOENT'],
    [{ ...redis, password: { file: `${folder}/empty` } }, 'state.password.file', 'is empty'],
    [{ ...redis, cluster: true, password: { file: `${folder}/empty` } }, 'state.password.file', 'is empty'],
    [
      { engine: 'lmdb', usageStore: { ...usageStore, password: { file: `${folder}/none` } } }, 'state.usageStore.password.file',
      'cannot be read: ENOENT',
    ],
    [{ ...redis, url: 'redis://gateway:can#ary@127.0.0.1:9' }, 'state.url', unread],
    [{ ...redis, url: 'redis://gateway:can%ary@127.0.0.1:9' }, 'state.url', unread],
    [{ engine: 'lmdb', usageStore: { url: 'postgres://gateway:can/ary@127.0.0.1:9/db' } }, 'state.usageStore.url', unread],
  ] as const
  for (const [config, option, problem] of wrong) {
    await t.rejects(openState(config), { code: 'LLM_GATEWAY_OPTION', message: `option ${option} ${problem}` })
    writeFileSync(`${folder}/gateway.yaml`, yaml('https://provider.example', []).replace('{ engine: memory }', JSON.stringify(config)))
    const { code, err } = await command('check', '--config', `${folder}/gateway.yaml`)
    t.equal(code, 1)
    t.match(err, problem)
    t.notMatch(err, /ary/)
  }
})
