import { Agent, get, request as httpRequest, type IncomingMessage } from 'node:http'
import { once } from 'node:events'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import t from 'tap'
import { originOf } from '../../plugins/standalone/curls.js'
import { Standalone } from '../../plugins/standalone/standalone.js'
import { freePort } from '../helpers/free-port.js'
import { startUpstream, type Upstream } from '../helpers/upstream.js'
import { chat, start, status, yaml } from './run.js'

/** Scripts one stream that sends its first event and waits for `release` with the others. */
function holdStream (upstream: Upstream): { release: () => void, first: Promise<unknown> } {
  let release = (): void => {}
  let begun = (_: unknown): void => {}
  const gate = new Promise<void>((resolve) => { release = resolve })
  const first = new Promise((resolve) => { begun = resolve })
  upstream.queue({
    fixture: 'chat_completions.include_usage.sse',
    split: 'events',
    before: async (write) => {
      if (write === 1) {
        begun(null)
        await gate
      }
    },
  })
  return { release, first }
}

async function metric (origin: string, name: RegExp): Promise<number> {
  const text = await (await fetch(`${origin}/metrics`)).text()
  return Number(name.exec(text)?.[1])
}

const requests = /^llm_gateway_requests_total\{protocol="chat_completions".*outcome="ok"\} (\d+)$/m

const orNotServed = '; if it does, this endpoint is not served here.'

t.test('a request goes through, logged once by its ids and never by its URL', async (t) => {
  const upstream = await startUpstream(t)
  const { origin, log } = await start(t, yaml(upstream.url, ['key-a']))
  t.equal(await status(origin, 'key-a'), 200)
  t.equal((await upstream.requests.next()).headers.authorization, 'Bearer upstream-secret')
  const [notice, line, ...more] = log().trim().split('\n').map((text) => JSON.parse(text))
  t.match(notice, { level: 40, msg: /^state\.engine is memory/ })
  t.same(more, [])
  t.match(line, {
    msg: 'model request',
    llm: { protocol: 'chat_completions', group: 'chat', key_id: 'key-a', outcome: 'ok', status: 200, upstream: 'main' },
  })
})

t.test('whatever is logged of a model request has the id that its caller was told', async (t) => {
  const { origin, log } = await start(t, yaml('http://127.0.0.1:9', ['k1']))
  const reply = await chat(origin, 'k1')
  t.equal(reply.status, 502)
  const line = log().split('\n').find((each) => each.includes('the upstream gave no reply'))
  t.equal(JSON.parse(String(line)).reqId, reply.headers.get('x-request-id'))
})

t.test('probes of a load balancer are answered', async (t) => {
  const { origin } = await start(t, yaml('http://127.0.0.1:9', []))
  t.equal((await fetch(origin, { method: 'HEAD' })).status, 200)
  t.same(await (await fetch(origin)).json(), { name: 'llm-gateway' })
  const health = await fetch(`${origin}/health`)
  t.equal(health.headers.get('cache-control'), 'no-store', 'afresh each time, also through a cache in front')
  t.same(await health.json(), { status: 'ok' })
})

t.test('price lists that are named at the start are known from then on', async (t) => {
  const list = join(mkdtempSync(join(tmpdir(), 'prices-')), 'list.yaml')
  t.teardown(() => rmSync(dirname(list), { recursive: true }))
  writeFileSync(list, 'models: { m: { input: 1 } }')
  const { gateway } = await start(t, yaml('http://127.0.0.1:9', [], `prices: { files: ["${list}"] }`))
  t.strictSame(gateway.priceFiles, [list])
})

t.test('what nobody serves is a native 404', async (t) => {
  const { origin } = await start(t, yaml('http://127.0.0.1:9', []))
  const message = `Unknown request URL: GET /nowhere. Use the base URL ${origin}/v1 with your client${orNotServed}`
  t.match(await (await fetch(`${origin}/nowhere`)).json(), { error: { message, code: 'unknown_url' } })
  const anthropic = await fetch(`${origin}/nowhere`, { headers: { 'anthropic-version': '2023-06-01' } })
  t.equal(anthropic.status, 404)
  t.match(await anthropic.json(), { type: 'error', error: { type: 'not_found_error' } })
})

t.test('a path of Vertex is a 404 of its own family, with the base address that its client should have', async (t) => {
  const { origin } = await start(t, yaml('http://127.0.0.1:9', []))
  for (const version of ['v1', 'v1beta1']) {
    const path = `/${version}/projects/p/locations/l/publishers/google/models/m:generateContent`
    const reply = await fetch(origin + path, { method: 'POST', headers: { authorization: 'Bearer key-a' }, body: '{}' })
    const message = `Unknown request URL: POST ${path}. Use the base URL ${origin} with your client${orNotServed}`
    t.match([reply.status, await reply.json()], [404, { error: { code: 404, message, status: 'NOT_FOUND' } }])
  }
})

t.test('the console has a port of its own, also after a reload', async (t) => {
  const text = yaml('http://127.0.0.1:9', [], 'console: { listen: { port: 0 } }')
  const { gateway, origin } = await start(t, text)
  t.equal(await gateway.reload(), true)
  const page = originOf(gateway.consoleAddress ?? gateway.address)
  t.match(await (await fetch(page)).text(), /<html/)
  t.match(await (await fetch(`${page}/data?after=0`)).json(), { points: Array, tables: Object })
  t.equal((await fetch(`${page}/metrics`)).status, 404, 'nothing else is there')
  t.equal((await fetch(`${page}/../metrics`)).status, 404)
  t.equal((await fetch(`${origin}/console`)).status, 404)
  await gateway.stop()
  await t.rejects(fetch(page))
})

t.test('the port of the console tells nobody by which path of the gateway the console can be had', async (t) => {
  const { gateway } = await start(t, yaml('http://127.0.0.1:9', [], 'console: { listen: { port: 0 } }'))
  const page = originOf(gateway.consoleAddress ?? gateway.address)
  const asked = [['GET', '/nope'], ['GET', '/data/'], ['GET', '/upstreams/x?after=0'], ['GET', '/v1/models'], ['POST', '/'], ['PUT', '/']]
  for (const [method = '', path = ''] of asked) {
    const reply = await fetch(page + path, { method })
    t.match([reply.status, await reply.text()], [404, 'Not found\n'], `${method} ${path}`)
  }
  t.equal((await fetch(`${page}/data`, { method: 'HEAD' })).status, 200)
})

t.test('a path of the console that ends with a slash has its data on a port of its own, too', async (t) => {
  const { gateway } = await start(t, yaml('http://127.0.0.1:9', [], 'console: { path: /live/, listen: { port: 0 } }'))
  const page = originOf(gateway.consoleAddress ?? gateway.address)
  for (const path of ['/', '/?from=here', '/data?after=0']) t.equal((await fetch(`${page}${path}`)).status, 200, path)
})

t.test('the console may stand beside the endpoints', async (t) => {
  const { gateway, origin } = await start(t, yaml('http://127.0.0.1:9', [], 'console: { path: /live }'))
  t.equal(gateway.consoleAddress, null)
  t.match(await (await fetch(`${origin}/live`)).text(), /<html/)
})

t.test('a console whose port is taken leaves nothing open', async (t) => {
  const { gateway, file, write } = await start(t, yaml('http://127.0.0.1:9', []))
  const port = await freePort()
  write(yaml('http://127.0.0.1:9', [], `console: { listen: { port: ${gateway.address.port} } }`))
  await t.rejects(Standalone.start({ file, env: { PORT: `${port}` } }), { code: 'EADDRINUSE' })
  await t.rejects(fetch(`http://127.0.0.1:${port}`))
})

t.test('a reload changes keys and upstreams for new requests and keeps the counters', async (t) => {
  const [one, two] = [await startUpstream(t), await startUpstream(t)]
  const { gateway, origin, write, log } = await start(t, yaml(one.url, ['key-a']))
  t.equal(await status(origin, 'key-a'), 200)
  write(yaml(two.url, ['key-b']))
  t.equal(await gateway.reload(), true)
  t.equal(await status(origin, 'key-a'), 401)
  t.equal(await status(origin, 'key-b'), 200)
  t.equal(one.seen.length, 1)
  t.equal(two.seen.length, 1)
  t.equal(await metric(origin, requests), 2)
  t.match(log(), 'configuration reloaded')
})

t.test('a stream that is open during a reload finishes on the old configuration', async (t) => {
  const upstream = await startUpstream(t)
  const { gateway, origin, write } = await start(t, yaml(upstream.url, ['key-a']))
  const { release, first } = holdStream(upstream)
  const answer = chat(origin, 'key-a', { stream: true })
  await first
  const response = await answer
  write(yaml(upstream.url, ['key-b']))
  t.equal(await gateway.reload(), true)
  t.equal(await status(origin, 'key-a'), 401, 'the key is gone')
  release()
  t.match(await response.text(), /\[DONE\]\n\n$/)
  t.equal(await metric(origin, requests), 1)
})

t.test('gauges tell what the new configuration has while a stream of the one before is open', async (t) => {
  const upstream = await startUpstream(t)
  const limited = (tokens: number): string => yaml(upstream.url, ['key-a']).replace('upstream: main', `$&, limits: { balance: ${tokens} }`)
  const before = limited(1_000).replace('main:', `gone: { url: "${upstream.url}", credential: none }, $&`)
  const { gateway, origin, write } = await start(t, before)
  const { release, first } = holdStream(upstream)
  const response = await chat(origin, 'key-a', { stream: true, max_tokens: 500 })
  await first
  const ratio = /^llm_gateway_balance_remaining_ratio\{group="chat"\} (\S+)$/m
  t.ok(await metric(origin, ratio) < 0.6)
  write(limited(1_000_000))
  t.equal(await gateway.reload(), true)
  t.equal(await status(origin, 'key-a'), 200)
  t.ok(await metric(origin, ratio) > 0.9)
  t.equal(await metric(origin, /^llm_gateway_upstream_active_requests\{upstream="main"\} (\d+)$/m), 1, 'begun by the app before')
  t.same(await metric(origin, /upstream="gone"\} (\d+)$/m), NaN, 'what it had and nothing runs at')
  t.equal(await metric(origin, /^llm_gateway_key_cache_entries\{kind="positive"\} (\d+)$/m), 0)
  release()
  await response.text()
})

t.test('a file that is wrong is refused whole', async (t) => {
  const upstream = await startUpstream(t)
  const { gateway, origin, write, log } = await start(t, yaml(upstream.url, ['key-a']))
  const wrong: ReadonlyArray<readonly [text: string, logged: string]> = [
    [yaml(upstream.url, ['key-b'], 'groups.chat: 1'), 'groups.chat: is not known'],
    [
      yaml(upstream.url, ['key-b']).replace('upstream: main }', 'upstream: main, limits: { balance: hunter2 } }'),
      'groups.chat.limits.balance: must be integer, not string',
    ],
    [yaml(upstream.url, ['key-b'], 'validation: { schemas: { chat: ./nowhere.json } }'), 'validation.schemas.chat'],
  ]
  for (const [text, logged] of wrong) {
    write(text)
    t.equal(await gateway.reload(), false)
    t.match(log(), logged)
    t.equal(await status(origin, 'key-a'), 200)
    t.equal(await status(origin, 'key-b'), 401)
  }
  t.notMatch(log(), 'hunter2')
})

t.test('a pipe in the place of a file holds no caller, and neither does a file of gigabytes', async (t) => {
  const upstream = await startUpstream(t)
  const { gateway, origin, file, write, log } = await start(t, yaml(upstream.url, ['key-a']))
  const [secret, prices] = [join(dirname(file), 'secret'), join(dirname(file), 'prices.yaml')]
  const text = yaml(upstream.url, ['key-a'], 'prices: { files: [prices.yaml] }').replace('upstream-secret', `{ file: "${secret}" }`)
  const bytes: Record<string, string> = { [file]: text, [prices]: 'models: {}', [secret]: 'upstream-secret' }
  for (const [path, content] of Object.entries(bytes)) writeFileSync(path, content)
  t.equal(await gateway.reload(), true)
  for (const [path, content] of Object.entries(bytes)) {
    t.equal(await status(origin, 'key-a'), 200)
    rmSync(path)
    execFileSync('mkfifo', [path])
    t.equal(await gateway.reload(), path === secret, path)
    t.equal(await status(origin, 'key-a'), path === secret ? 503 : 200, path)
    rmSync(path)
    writeFileSync(path, content)
  }
  truncateSync(file, 9e9)
  t.equal(await gateway.reload(), false)
  write(text)
  t.match(log(), 'gateway.yaml: the file cannot be read (NOT_A_FILE): it has to be a plain file')
  t.match(log(), 'gateway.yaml: the file cannot be read (TOO_LONG): it is longer than 8 MiB')
  t.match(log(), 'prices.yaml: cannot be read (NOT_A_FILE)')
})

t.test('sections that are read at start are named when they change', async (t) => {
  const { gateway, write, log } = await start(t, yaml('http://127.0.0.1:9', [], 'log: { level: warn }'))
  write(yaml('http://127.0.0.1:9', [], 'listen: { port: 1 }'))
  t.equal(await gateway.reload(), true)
  t.match(log(), '"sections":["listen","log"]')
  write(yaml('http://127.0.0.1:9', [], 'log: { level: warn }\noverload: { maxConnections: 9, maxActive: 9 }'))
  t.equal(await gateway.reload(), true)
  t.match(log(), '"sections":["overload.maxConnections"]')
})

t.test('a section that waits for a restart is refused where it would fail that', async (t) => {
  const { gateway, origin, write, log } = await start(t, yaml('http://127.0.0.1:9', []))
  for (const [section, said] of [
    ['metrics: { labels: [le] }', 'gateway.yaml:5: metrics.labels[0]: is a label that the metrics have already'],
    [
      'state: { engine: redis, url: "redis://127.0.0.1:1", password: { file: nowhere } }',
      'gateway.yaml:5: state.password.file: cannot be read: ENOENT',
    ],
  ] as const) {
    const all = yaml('http://127.0.0.1:9', ['new'], section)
    write(section.startsWith('state') ? all.replace('state: { engine: memory }', '') : all)
    t.equal(await gateway.reload(), false, section)
    t.match(log(), said)
    t.equal(await status(origin, 'new'), 401, 'the old one stays')
  }
})

t.test('a reload changes nothing of a section that waits for a restart, be it new, another one or gone', async (t) => {
  const told: Record<string, readonly [before: string, after: string]> = {
    'of its own port': ['console: { path: /live, listen: { port: 0 } }', 'console: { path: /other }'],
    'that is new': ['', 'console: { path: /live }\nmetrics: { path: /other }\nlisten: { trustProxy: [loopback] }\nlog: { level: error }'],
    'that is gone': ['metrics: { path: /other }\nconsole: { path: /live }\nlisten: { trustProxy: [loopback] }\nlog: { level: error }', ''],
  }
  for (const [name, [before, after]] of Object.entries(told)) {
    const upstream = await startUpstream(t)
    const { gateway, origin, write, log } = await start(t, yaml(upstream.url, ['key-a'], before))
    const page = gateway.consoleAddress === null ? origin : originOf(gateway.consoleAddress)
    const seen = async (key: string): Promise<unknown> => {
      t.equal(await status(origin, key), 200, name)
      const paths = ['/metrics', '/other', '/live', '/console'].map((path) => `${origin}${path}`)
      const statuses = await Promise.all([...paths, page].map(async (url) => (await fetch(url)).status))
      const unknown = await fetch(`${origin}/nowhere`, { headers: { 'x-forwarded-host': 'proxy.example' } })
      return [...statuses, /Use the base URL \S+/.exec(await unknown.text())?.[0], log().includes(`"key_id":"${key}"`)]
    }
    const atStart = await seen('key-a')
    write(yaml(upstream.url, ['key-b'], after))
    t.equal(await gateway.reload(), true, name)
    t.strictSame(await seen('key-b'), atStart, name)
    t.equal(log().includes('"sections"'), !before.includes('error'), name)
  }
})

t.test('a reload may bring the simulated upstream', async (t) => {
  const { gateway, origin, write } = await start(t, yaml('http://127.0.0.1:9', ['key-a']))
  t.equal(await status(origin, 'key-a'), 502)
  write(yaml('', ['key-a']).replace(/url.*secret/, 'simulate: true'))
  t.same(await Promise.all([gateway.reload(), gateway.reload()]), [true, true])
  t.equal(await status(origin, 'key-a'), 200)
})

t.test('the end lets streams finish, refuses what is new and leaves no socket waiting', async (t) => {
  const upstream = await startUpstream(t)
  const { gateway, origin } = await start(t, yaml(upstream.url, ['key-a']))
  const agent = new Agent({ keepAlive: true })
  const [idle] = await once(get(`${origin}/health`, { agent }), 'response') as [IncomingMessage]
  idle.resume()
  const { release, first } = holdStream(upstream)
  const answer = chat(origin, 'key-a', { stream: true })
  await first
  const response = await answer

  const stopped = gateway.stop()
  await new Promise(setImmediate)
  const refused = await chat(origin, 'key-a')
  t.equal(refused.status, 503)
  t.equal(refused.headers.get('connection'), 'close')
  t.ok(refused.headers.get('retry-after'))
  t.match(await refused.json(), { error: { code: 'shutting_down', message: String } })
  const health = await fetch(`${origin}/health`)
  t.equal(health.status, 503)
  t.same(await health.json(), { status: 'draining' })
  t.equal(await gateway.reload(), false, 'no reload any more')

  release()
  t.match(await response.text(), /\[DONE\]\n\n$/)
  await stopped
  t.equal(upstream.seen.length, 1, 'nothing new went upstream')
  await t.rejects(fetch(origin), 'the port is closed')
  agent.destroy()
})

t.test('requests that outlast the grace are cut, by the gateway and not by their callers', async (t) => {
  const upstream = await startUpstream(t)
  const { gateway, origin, log } = await start(
    t, yaml(upstream.url, ['key-a', 'key-b'], 'listen: { shutdownGraceMs: 10 }\nforward: { drain: { maxMs: 0 } }')
  )
  const { first } = holdStream(upstream)
  const answer = chat(origin, 'key-a', { stream: true })
  await first
  const response = await answer
  upstream.queue({ stallAt: 'headers' })
  const waiting = t.rejects(chat(origin, 'key-b'))
  while (upstream.seen.length < 2) await upstream.arrivals.next()
  await gateway.stop()
  await t.rejects(response.text())
  await waiting
  const lines = log().trim().split('\n').map((text) => JSON.parse(text).llm).filter((llm) => llm !== undefined)
  for (const [id, status, usageMissing] of [['key-a', 200, 'client_abort'], ['key-b', 0, 'client_abort']] as const) {
    t.match(
      lines.find((llm) => llm.key_id === id), { outcome: 'truncated', aborted_by: 'gateway', status, usage_missing: usageMissing }, id
    )
  }
})

t.test('under HTTP/1.0 such a request is reset, as its end would be that of a whole reply', async (t) => {
  const upstream = await startUpstream(t)
  const { gateway, origin } = await start(
    t, yaml(upstream.url, ['key-a'], 'listen: { shutdownGraceMs: 10 }\nforward: { drain: { maxMs: 0 } }')
  )
  const { first } = holdStream(upstream)
  const socket = connect(Number(new URL(origin).port), '127.0.0.1')
  let code = 'a clean end'
  socket.on('error', (error) => { code = String(Reflect.get(error, 'code')) })
  const begun = new Promise((resolve) => socket.once('data', resolve))
  const ended = new Promise((resolve) => socket.once('close', resolve))
  const body = JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'x' }] })
  socket.write([
    'POST /v1/chat/completions HTTP/1.0', 'host: gateway', 'authorization: Bearer key-a', 'content-type: application/json',
    `content-length: ${body.length}`, '', body,
  ].join('\r\n'))
  await first
  await begun
  await gateway.stop()
  await ended
  t.equal(code, 'ECONNRESET')
})

t.test('a disk that takes no usage records is told at once, and does not keep the gateway from its end', async (t) => {
  const upstream = await startUpstream(t)
  const path = mkdtempSync(join(tmpdir(), 'llm-gateway-state-'))
  t.teardown(() => rmSync(path, { recursive: true }))
  const limited = yaml(upstream.url, ['key-a']).replace('upstream: main', 'upstream: main, limits: { balance: 100000 }')
  const { gateway, origin, log } = await start(t, limited.replace('engine: memory', `engine: lmdb, path: ${path}`))
  rmSync(join(path, 'ledger'), { recursive: true })
  writeFileSync(join(path, 'ledger'), '')
  t.equal(await status(origin, 'key-a'), 200)
  while (!log().includes('usage records cannot be written')) await new Promise((resolve) => setTimeout(resolve, 5))
  t.equal(await status(origin, 'key-a'), 200)
  t.match(await (await fetch(`${origin}/metrics`)).text(), /llm_gateway_ledger_write_failures_total [1-9]/)
  await gateway.stop()
  const lines = log().trim().split('\n').map((line) => JSON.parse(line))
  t.match(lines.filter(({ level }) => level === 50), [
    { msg: /^usage records cannot be written/, err: { code: 'EEXIST' } },
    { msg: 'a usage record could not be kept', record: { key: 'key-a', input: 80 } },
    { msg: 'a usage record could not be kept', record: { key: 'key-a', input: 80 } },
  ])
})

t.test('asked a second time it waits for nobody', async (t) => {
  const upstream = await startUpstream(t)
  const { gateway, origin } = await start(t, yaml(upstream.url, ['key-a'], 'forward: { drain: { maxMs: 0 } }'))
  const { first } = holdStream(upstream)
  const answer = chat(origin, 'key-a', { stream: true })
  await first
  const response = await answer
  gateway.stop()
  await gateway.stop()
  await t.rejects(response.text())
})

t.test('an address in use, or an app that does not come up, leaves nothing open', async (t) => {
  const { gateway, file, write } = await start(t, 'upstreams: { a: { simulate: true } }\ngroups: { a: { protocols: [messages] } }')
  const taken = { HOST: gateway.address.host, PORT: String(gateway.address.port) }
  await t.rejects(Standalone.start({ file, env: taken }), { code: 'EADDRINUSE' })
  await t.rejects(Standalone.start({ file, env: { PORT: 'x' } }), { name: 'ConfigError' })
  write(
    'upstreams: { a: { simulate: true } }\ngroups: { a: { protocols: [messages] } }\nvalidation: { schemas: { messages: ./nowhere.json } }'
  )
  await t.rejects(Standalone.start({ file, env: { PORT: '0' } }), { code: 'LLM_GATEWAY_OPTION' })
})

t.test('a key in the URL reaches neither log, metrics nor replies', async (t) => {
  const upstream = await startUpstream(t)
  const text = yaml(upstream.url, ['key-a'], 'log: { level: trace }').replace('responses]', 'generate_content]')
  const { origin, log } = await start(t, text)
  const emitted: string[] = []
  const secret = 'c4nary-secret'
  for (const path of [
    '/v1beta/models/m:generateContent', '/v1/chat/completions', '/nowhere', '/v1/nowhere', '/v1beta/%2e%2e/x', '/metrics', '/',
  ]) {
    for (const method of ['POST', 'GET']) {
      const response = await fetch(`${origin}${path}?key=${secret}`, { method, ...method === 'POST' && { body: '{}' } })
      emitted.push(await response.text(), JSON.stringify([...response.headers]))
    }
  }
  t.equal((await fetch(`${origin}/v1beta/models/m:generateContent?key=key-a&alt=json`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"contents":[{"parts":[{"text":"a"}]}]}',
  })).status, 200, 'the key works there')
  t.equal((await upstream.requests.next()).url, '/v1beta/models/m:generateContent?alt=json')
  emitted.push(log(), await (await fetch(`${origin}/metrics`)).text())
  t.equal(emitted.find((text) => text.includes(secret)), undefined)
  t.notMatch(log(), 'key=')
})

t.test('a caller that dribbles its request is cut off', async (t) => {
  const { gateway } = await start(t, yaml('http://127.0.0.1:9', ['key-a'], 'listen: { requestTimeoutMs: 1000 }'))
  for (const bytes of [
    'GET / HT',
    'POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nauthorization: Bearer key-a\r\ncontent-type: application/json\r\ncontent-length: ' +
      '9\r\n\r\n{',
  ]) {
    const socket = connect(gateway.address.port, gateway.address.host)
    socket.write(bytes)
    socket.resume()
    await once(socket, 'close')
    t.pass('closed')
  }
})

t.test('bytes that are no HTTP get a reply in JSON', async (t) => {
  const { gateway, origin } = await start(t, yaml('http://127.0.0.1:9', []))
  const raw = async (bytes: string): Promise<string> => {
    const socket = connect(gateway.address.port, gateway.address.host)
    socket.write(bytes)
    let text = ''
    for await (const chunk of socket) text += String(chunk)
    return text
  }
  t.match(await raw('c4nary\r\n\r\n'), /^HTTP\/1\.1 400 Bad Request\r\nconnection: close\r\n[^]*\{"error":\{"message":/)
  t.match(await raw(`GET / HTTP/1.1\r\nhost: a\r\na: ${'c'.repeat(20_000)}\r\n\r\n`), /^HTTP\/1\.1 431 /)
  t.match(await raw('GET / HTTP/1.1\r\n\r\n'), /^HTTP\/1\.1 400 [^]*\{"error":\{"message":/, 'no host')
  const upgrade = httpRequest(`${origin}/v1/responses`, { headers: { connection: 'upgrade', upgrade: 'websocket' } }).end()
  const [response] = await once(upgrade, 'response') as [IncomingMessage]
  t.equal(response.statusCode, 401)
  response.resume()
})
