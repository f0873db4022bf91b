/** Several workers behind one port are one gateway: whoever of them is met, the same is let in, counted and refused. */
import { writeFileSync } from 'node:fs'
import { request as openRequest, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { launch, originOf, program } from '../helpers/launch.js'
import { replyFixture, startUpstream, type Upstream } from '../helpers/upstream.js'
import { startRedis, withoutRedis } from '../state/redis/server.js'
import { command } from './terminal.js'

const workers = 2
const asked = JSON.stringify({ model: 'm', max_tokens: 90, messages: [{ role: 'user', content: 'hi' }] })
/** What a request of that size and those tokens holds. */
const heldTokens = Math.ceil(asked.length / 4) + 90

interface Reply {
  readonly status: number
  readonly text: string
}

/** On a connection of its own: the workers are met by turns. */
async function open (url: string, headers: Record<string, string> = {}, body?: string): Promise<IncomingMessage> {
  return await new Promise((resolve, reject) => {
    const request = openRequest(url, { agent: false, method: body === undefined ? 'GET' : 'POST', headers }, resolve)
    request.on('error', reject)
    request.on('upgrade', (response) => reject(new Error(`upgraded: ${response.statusCode}`)))
    request.end(body)
  })
}

async function ask (url: string, headers: Record<string, string> = {}, body?: string): Promise<Reply> {
  const response = await open(url, headers, body)
  return { status: Number(response.statusCode), text: await textOf(response) }
}

interface Cluster {
  readonly origin: string
  readonly upstream: Upstream
  readonly file: string
  /** Has them all take the file with these keys besides. */
  readonly reload: (...secrets: string[]) => void
  readonly chat: (secret: string, body?: string) => Promise<Reply>
  /** Asks until every worker says so. */
  readonly all: (secret: string, status: number) => Promise<void>
  readonly end: () => Promise<void>
}

const limits: Readonly<Record<string, string>> = {
  rated: 'requestsPerMinute: 7',
  narrow: 'concurrency: 4',
  paid: `balance: ${heldTokens * 5 + 20}`,
  budgeted: `budgets: [{ tokens: ${heldTokens * 6 + 20}, period: total }]`,
}

async function start (t: Test, state: string): Promise<Cluster> {
  const upstream = await startUpstream(t)
  const file = join(t.testdir({}), 'gateway.yaml')
  const write = (...secrets: string[]): void => writeFileSync(file, [
    `upstreams: { main: { url: "${upstream.url}", credential: upstream-secret } }`,
    'groups:',
    '  chat: { protocols: [chat_completions] }',
    ...Object.entries(limits).map(([name, limit]) => `  ${name}: { protocols: [chat_completions], limits: { ${limit} } }`),
    'keys:',
    ...Object.keys(limits).map((name) => `  - { id: ${name}, group: ${name}, secret: key-${name} }`),
    ...secrets.map((secret) => `  - { id: ${secret}, group: chat, secret: ${secret} }`),
    'auth: { cache: { ttlMs: 3600000, negativeTtlMs: 3600000 }, failures: false }',
    `listen: { workers: ${workers} }`,
    'overload: { maxLoopDelayMs: 0 }',
    'log: { level: error }',
    'console: { path: /console }',
    `state: { ${state} }`,
  ].join('\n'))
  write('first')
  const gateway = launch(t, program, ['start', '--config', file], { PORT: '0' })
  const origin = await originOf(gateway)
  const chat = async (secret: string, body = asked): Promise<Reply> => {
    return await ask(`${origin}/v1/chat/completions`, { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }, body)
  }
  const all = async (secret: string, status: number): Promise<void> => {
    for (let inARow = 0; inARow < workers * 3;) inARow = (await chat(secret)).status === status ? inARow + 1 : 0
  }
  const reload = (...secrets: string[]): void => {
    write(...secrets)
    gateway.process.kill('SIGHUP')
  }
  const end = async (): Promise<void> => {
    gateway.process.kill('SIGTERM')
    await gateway.exited
  }
  return { origin, upstream, file, reload, chat, all, end }
}

/** Of 25 pairs of workers one began in the same millisecond. They cannot be told apart then, and are started anew, twice at most. */
async function startApart (t: Test, state: string, times = 3): Promise<Cluster> {
  const cluster = await start(t, state)
  if (times === 1 || await meetsAll(cluster) === workers) return cluster
  await cluster.end()
  return await startApart(t, state, times - 1)
}

const upgrade = {
  connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13', 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
}

async function meetsAll ({ origin }: Cluster): Promise<number> {
  const replies = await Promise.all(Array.from({ length: workers * 4 }, async () => await ask(`${origin}/console/data`)))
  return new Set(replies.map(({ text }) => JSON.parse(text).startedAt)).size
}

/** Requests at the same time, of which the upstream keeps those that come waiting until all others are answered. */
async function atOnce ({ upstream, chat }: Cluster, secret: string, requests: number): Promise<{ served: number, refused: number[] }> {
  let release = (): void => {}
  const wait = new Promise<void>((resolve) => { release = resolve })
  upstream.respond = () => ({ fixture: 'chat_completions.json', before: async () => await wait })
  const before = upstream.seen.length
  const refused: number[] = []
  const seeAll = (): void => { if (upstream.seen.length - before + refused.length >= requests) release() }
  upstream.server.on('request', seeAll)
  const replies = await Promise.all(Array.from({ length: requests }, async () => {
    const { status } = await chat(secret)
    if (status !== 200) refused.push(status)
    seeAll()
    return status
  }))
  upstream.server.off('request', seeAll)
  upstream.respond = () => null
  return { served: replies.filter((status) => status === 200).length, refused: [...new Set(refused)] }
}

const engines: ReadonlyArray<{ name: string, skip: string | false, state: (t: Test) => Promise<string> }> = [
  { name: 'lmdb', skip: false, state: async (t) => `engine: lmdb, path: "${t.testdir({ data: {} })}/data"` },
  {
    name: 'Redis',
    skip: withoutRedis,
    state: async (t) => {
      const server = await startRedis()
      t.teardown(server.stop)
      return `engine: redis, url: "${server.url}", commandTimeoutMs: 10000, path: "${t.testdir({ data: {} })}/data"`
    },
  },
]

for (const { name, skip, state } of engines) {
  t.test(`workers that share ${name}`, { skip }, async (t) => {
    const cluster = await startApart(t, await state(t))
    const { origin, upstream, file, chat, all } = cluster
    t.equal(await meetsAll(cluster), workers)

    await t.test('let no upgrade pass, with a key or without', async (t) => {
      for (let worker = 0; worker < workers; worker += 1) {
        t.equal((await ask(`${origin}/v1/realtime?model=m`, upgrade)).status, 401)
        t.equal((await ask(`${origin}/v1/chat/completions`, { ...upgrade, authorization: 'Bearer wrong' })).status, 401)
        t.equal((await ask(`${origin}/v1/realtime?model=m`, { ...upgrade, authorization: 'Bearer first' })).status, 426)
      }
      t.equal(upstream.seen.length, 0)
    })

    await t.test('know a key as soon as it is issued, and no more once it is revoked', async (t) => {
      const { out: [secret = ''] } = await command('keys', 'create', '--group', 'chat', '--id', 'issued', '--config', file)
      await all(secret, 200)
      await command('keys', 'revoke', 'issued', '--config', file)
      await all(secret, 401)
      t.pass('within the time of this test, of keys that are cached for an hour')
    })

    await t.test('take another configuration in the middle of replies, which end whole', async (t) => {
      let release = (): void => {}
      const wait = new Promise<void>((resolve) => { release = resolve })
      upstream.respond = ({ json }) => json['stream'] === true
        ? { fixture: 'chat_completions.sse', split: 'events', before: async (write) => { if (write > 1) await wait } }
        : null
      const headers = { authorization: 'Bearer first', 'content-type': 'application/json' }
      const body = JSON.stringify({ ...JSON.parse(asked), stream: true, stream_options: { include_usage: true } })
      const streams = await Promise.all(Array.from(
        { length: workers * 2 }, async () => await open(`${origin}/v1/chat/completions`, headers, body)
      ))
      const replies = streams.map(async (stream) => await textOf(stream))
      cluster.reload('second')
      await all('second', 200)
      await all('first', 401)
      release()
      for (const reply of await Promise.all(replies)) t.equal(reply, replyFixture('chat_completions.sse').toString())
      upstream.respond = () => null
    })

    await t.test('let in together what the limits of a group allow, and not one more', async (t) => {
      t.strictSame(await atOnce(cluster, 'key-rated', 24), { served: 7, refused: [429] })
      t.strictSame(await atOnce(cluster, 'key-narrow', 24), { served: 4, refused: [429] })
      let again = await atOnce(cluster, 'key-narrow', 24)
      // A caller may have all of its reply before the store has heard that its place is free.
      for (let tries = 0; again.served < 4 && tries < 20; tries += 1) again = await atOnce(cluster, 'key-narrow', 24)
      t.strictSame(again, { served: 4, refused: [429] }, 'whose places are free again')
      t.strictSame(await atOnce(cluster, 'key-paid', 24), { served: 5, refused: [403] })
      t.strictSame(await atOnce(cluster, 'key-budgeted', 24), { served: 6, refused: [403] })
    })

    await t.test('tell the same sum, whichever is asked', async (t) => {
      const served = (await Promise.all(Array.from({ length: workers * 2 }, async () => {
        const { text } = await ask(`${origin}/metrics`)
        return [...text.matchAll(/^llm_gateway_requests_total\{.*outcome="ok"\} (\d+)$/gm)].reduce(
          (sum, [, count]) => sum + Number(count), 0
        )
      })))
      t.strictSame([...new Set(served)], [upstream.seen.length])
    })
    t.equal((await chat('second')).status, 200)
  })
}
