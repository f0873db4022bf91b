/** What the command line changes of a key, in gateways that run: by push, for the cache would keep it for an hour. */
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { launch, originOf, program } from '../helpers/launch.js'
import { startUpstream } from '../helpers/upstream.js'
import { startRedis, withoutRedis } from '../state/redis/server.js'
import { chat } from '../standalone/run.js'
import { command } from './terminal.js'

const hour = 3_600_000

type StateText = (t: Test) => Promise<string>

const engines: ReadonlyArray<{ name: string, skip: string | false, state: StateText }> = [
  { name: 'lmdb', skip: false, state: async (t) => `engine: lmdb, path: "${t.testdir({})}"` },
  { name: 'redis', skip: withoutRedis, state: async (t) => await redis(t, false) },
  { name: 'redis cluster', skip: withoutRedis, state: async (t) => await redis(t, true) },
]

async function redis (t: Test, cluster: boolean): Promise<string> {
  const server = await startRedis({ cluster })
  t.teardown(server.stop)
  return `engine: redis, url: "${server.url}", cluster: ${cluster}, commandTimeoutMs: 5000, path: "${t.testdir({})}"`
}

function yaml (upstream: string, state: string): string {
  return [
    `upstreams: { main: { url: "${upstream}", credential: upstream-secret } }`,
    'groups: { chat: { protocols: [chat_completions] }, other: { protocols: [messages] } }',
    `auth: { cache: { ttlMs: ${hour}, negativeTtlMs: ${hour} } }`,
    `state: { ${state} }`,
  ].join('\n')
}

for (const { name, skip, state } of engines) {
  t.test(`a change reaches two workers on ${name}`, { skip }, async (t) => {
    const upstream = await startUpstream(t)
    const text = yaml(upstream.url, await state(t))
    const file = join(t.testdir({ 'gateway.yaml': text }), 'gateway.yaml')
    const workers = await Promise.all([1, 2].map(async () => await originOf(launch(t, program, ['start', '--config', file], {
      PORT: '0',
    }))))
    const keys = async (...args: string[]): Promise<string> => {
      const { code, out: [first = ''], err } = await command('keys', ...args, '--config', file)
      t.equal(code, 0, `${args.join(' ')}: ${err}`)
      return first
    }
    /** Asks both workers until both say so. */
    const come = async (secret: string, wanted: number, what: string): Promise<void> => {
      const since = performance.now()
      for (const origin of workers) {
        for (;;) {
          const reply = await chat(origin, secret)
          await reply.text()
          if (reply.status === wanted) break
          await new Promise((resolve) => setTimeout(resolve, 10))
        }
      }
      t.pass(`${what}: ${wanted} after ${Math.round(performance.now() - since)} ms`)
    }

    const first = await keys('create', '--group', 'chat', '--id', 'k')
    await come(first, 200, 'issued')
    await keys('update', 'k', '--group', 'other')
    await come(first, 403, 'another group')
    await keys('update', 'k', '--group', 'chat', '--balance', '0')
    await come(first, 403, 'no balance')
    await keys('update', 'k', '--balance', 'none', '--requests-per-minute', '1')
    await come(first, 429, 'a limit')
    await keys('update', 'k', '--requests-per-minute', 'none')
    await come(first, 200, 'no limit')
    await keys('update', 'k', '--expires', '2020-01-01')
    await come(first, 401, 'expired')
    await keys('update', 'k', '--expires', 'never')
    await come(first, 200, 'never expires')
    const second = await keys('rotate', 'k')
    await come(first, 401, 'rotated')
    await come(second, 200, 'its new secret')
    await keys('revoke', 'k')
    await come(second, 401, 'revoked')
    await keys('update', 'k', '--enable')
    await come(second, 200, 'enabled again')
  })
}
