import { createServer } from 'node:http'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { freePort } from '../helpers/free-port.js'
import { launch, originOf, program } from '../helpers/launch.js'
import { createCaller } from '../endurance/caller.js'
import { startUpstream } from '../helpers/upstream.js'
import { chat, start } from '../standalone/run.js'
import { command } from './terminal.js'

function yaml (urls: readonly string[], consoleAt: string): string {
  return [
    `upstreams: { ${urls.map((url, i) => `m${i}: { url: "${url}", credential: s3cret-${i}, account: shared }`).join(', ')} }`,
    'pools: { pool: { members: [m0, { upstream: m1, tier: 2, weight: 3, concurrency: 9 }] } }',
    'groups: { chat: { protocols: [chat_completions], upstream: pool } }',
    'keys: [{ id: a, group: chat, secret: caller-secret }]',
    'state: { engine: memory }',
    `console: { ${consoleAt} }`,
  ].join('\n')
}

t.test('members, breakers and cooldowns of a gateway that runs', async (t) => {
  const [first, second, alone] = [await startUpstream(t), await startUpstream(t), await startUpstream(t)]
  const port = await freePort()
  const { origin, file } = await start(t, yaml([first.url, second.url, `${alone.url}/base/v1`], `listen: { port: ${port} }`))
  const ask = async (...args: string[]) => await command('upstreams', '--config', file, ...args)
  const before = await ask()
  t.equal(before.code, 0, before.err)
  t.strictSame(before.out, [
    'upstream  pools          account  state  model  running  returns in',
    'm0        pool           shared   up                  0',
    'm1        pool (tier 2)  shared   up                  0',
    'm2        -              shared   up                  0',
  ])
  for (let i = 0; i < 5; i += 1) {
    first.queue({ status: 503, body: {} })
    t.equal((await chat(origin, 'caller-secret')).status, 200)
  }
  second.queue({ status: 429, headers: { 'retry-after': '30' }, body: {} })
  t.equal((await chat(origin, 'caller-secret', { model: 'busy\u001b[2J' })).status, 429)
  second.queue({ status: 401, body: {} })
  t.equal((await chat(origin, 'caller-secret')).status, 200, 'the other one is due again')
  const { out } = await ask()
  t.match(out[1], /^m0 .* (?:out|due): failures|^m0 .* up /)
  t.match(out.join('\n'), /m0 +limit +busy\uFFFD\[2J +(?:29|30) s/)
  const { upstreams, pools } = JSON.parse((await ask('--json')).out.join(''))
  t.match(upstreams, [
    { name: 'm0', address: first.url, account: 'shared', models: [{ model: /^busy/, reason: 'limit', returnsInMs: Number }] },
    { name: 'm1', address: second.url },
    { name: 'm2', address: `${alone.url}/base`, state: 'up', reason: null, returnsInMs: 0, active: 0 },
  ])
  t.strictSame(pools, [{
    name: 'pool',
    members: [{ upstream: 'm0', tier: 1, weight: 1, concurrency: null, active: 0 }, {
      upstream: 'm1', tier: 2, weight: 3, concurrency: 9, active: 0,
    }],
  }])
  t.notMatch(JSON.stringify([upstreams, pools, out]), /s3cret|caller-secret/)
  t.equal((await fetch(`${origin}/upstreams`)).status, 404, 'not on the port of the callers')
})

t.test('of several workers all are told: each has breakers of its own', async (t) => {
  const [first, second] = [await startUpstream(t), await startUpstream(t)]
  const port = await freePort()
  const dir = t.testdir({})
  const file = join(dir, 'gateway.yaml')
  const text = yaml([first.url, second.url], `listen: { port: ${port} }`).replace('engine: memory', `engine: lmdb, path: "${dir}/data"`)
  writeFileSync(file, `${text}\nlisten: { workers: 2 }\nlog: { level: error }`)
  const origin = await originOf(launch(t, program, ['start', '--config', file], { PORT: '0' }))
  t.strictSame((await command('upstreams', '--config', file)).out.slice(1), [
    'm0        pool           shared   up                  0',
    'm1        pool (tier 2)  shared   up                  0',
  ])
  // One connection, and so one worker.
  const { call, close } = createCaller(1)
  t.teardown(close)
  first.queue(...Array.from({ length: 5 }, () => ({ status: 503, body: {} })))
  for (let i = 0; i < 5; i += 1) t.equal((await call(origin, { secret: 'caller-secret', tag: `t${i}` })).status, 200)
  const { out } = await command('upstreams', '--config', file)
  t.match(out.slice(1, 4).toSorted(), [/^m0 .* (?:out|due): failures \(1 of 2 workers\)/, /^m0 .* up \(1 of 2 workers\)/, /^m1 .* up {2}/])
  const { workers, upstreams } = JSON.parse((await command('upstreams', '--config', file, '--json')).out.join(''))
  t.equal(workers, 2)
  t.match(upstreams, [{ name: 'm0', workers: 1 }, { name: 'm0', workers: 1 }, { name: 'm1', workers: 2 }])
})

async function standing (t: Test, answer: string, status = 200): Promise<string> {
  const server = createServer((_request, response) => response.writeHead(status, { 'content-type': 'application/json' }).end(answer))
  const port = await freePort()
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  return `http://127.0.0.1:${port}/`
}

t.test('a console that is a path of the gateway, one that is told, and none', async (t) => {
  const upstream = await startUpstream(t)
  const { origin } = await start(t, yaml([upstream.url, upstream.url], 'path: /console'))
  t.match(await command('upstreams', '--url', `${origin}/console/`), { code: 0, out: [/^upstream/, /^m0/, /^m1/] })
  const write = (text: string): string => {
    const other = join(t.testdir({}), 'other.yaml')
    writeFileSync(other, text)
    return other
  }
  // Somebody may run a gateway at the usual address, but hardly at this one.
  const usualPort = write(yaml([upstream.url, upstream.url], 'path: /console') + '\nlisten: { host: 127.9.8.7 }')
  t.match(await command('upstreams', '--config', usualPort), {
    code: 1, err: /no answer from http:\/\/127\.9\.8\.7:8080\/console\/upstreams: is the gateway running\?/,
  })
  const without = write(yaml([upstream.url, upstream.url], 'listen: { port: 0 }'))
  t.match(await command('upstreams', '--config', without), { code: 1, err: /has no console/ })
  const none = write(yaml([upstream.url, upstream.url], '').replace(/console: .*/, ''))
  t.match(await command('upstreams', '--config', none), { code: 1, err: /has no console/ })
  const anywhere = write(yaml([upstream.url, upstream.url], 'path: /console') + '\nlisten: { port: 0 }')
  t.match(await command('upstreams', '--config', anywhere), { code: 1, err: /has no console/ }, 'a port that nobody knows')
  for (const url of [await standing(t, '{}'), await standing(t, 'no'), await standing(t, '{"upstreams":[],"pools":[]}', 500)]) {
    t.match(await command('upstreams', '--url', url), { code: 1, err: /is not the console of a gateway/ })
  }
  t.match(await command('upstreams', '--what'), { code: 2 })
})
