import { connect } from 'node:http2'
import { once } from 'node:events'
import httpProxy from '@fastify/http-proxy'
import Fastify from 'fastify'
import t from 'tap'
import llmGateway, { auth, paths, proxyOptions, upstreams } from '../../plugins/index.js'
import { call, everyProtocol, listen, read, secret, watchSettled } from '../helpers/gateway.js'
import { replyFixture, sha256, startUpstream } from '../helpers/upstream.js'
import { inOrder, overloaded, startPool } from './pool-gateway.js'

const chat = { model: 'gpt-5', messages: [{ role: 'user', content: 'Hi' }] }

t.test('in a mount of the host pools work as on own routes', async (t) => {
  const [mounted, first, second] = [await startUpstream(t), await startUpstream(t), await startUpstream(t)]
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(llmGateway, {
    routes: false,
    upstreams: {
      first: {
        url: `${first.url}/deployments/{model}`,
        path: 'verbatim',
        credential: 'one',
        credentialHeader: 'api-key',
        query: { v: 1 },
        models: { 'gpt-5': 'a much longer name' },
      },
      second: { url: second.url, credential: async () => 'two', headers: { 'x-own': 'second' } },
    },
    pools: { pool: { members: ['first', { upstream: 'second', tier: 2 }], retryOn: [503, 'first_event'] } },
    groups: { all: { protocols: everyProtocol, upstream: 'pool' } },
    keys: [{ id: 'caller', group: 'all', secret }],
  })
  const headers: Record<string, string> = {}
  await app.register(httpProxy, {
    ...proxyOptions(),
    upstream: mounted.url,
    prefix: '/v1',
    rewritePrefix: '/v1',
    // What a mount puts in for its own upstream is not for another one.
    replyOptions: {
      rewriteRequestHeaders: (_request, { 'content-length': length, ...given }) => ({
        ...given, 'Content-Length': length, authorization: 'Bearer of-the-mount', 'x-own': 'mount',
      }),
      rewriteHeaders: (given) => ({ ...given, ...headers, 'x-host': 'yes' }),
    },
  })
  const settled = watchSettled(app)
  const url = await listen(app)
  const body = JSON.stringify(chat)
  for (let i = 0; i < 2; i += 1) {
    first.queue(overloaded)
    const reply = await call(`${url}/v1/chat/completions?x=%2F`, { body }).reply
    t.equal(reply.statusCode, 200)
    t.equal(reply.headers['x-host'], 'yes')
    t.equal((await read(reply)).bytes.toString(), replyFixture('chat_completions.json').toString())
    const [one, two] = [first.seen.at(-1), second.seen.at(-1)]
    t.match(one, {
      url: '/deployments/a%20much%20longer%20name/chat/completions?v=1&x=%2F',
      headers: { 'api-key': 'one', authorization: undefined, 'x-own': undefined },
    })
    t.equal(one?.body.toString(), body.replace('gpt-5', 'a much longer name'))
    t.match(two, { url: '/v1/chat/completions?x=%2F', headers: { authorization: 'Bearer two', 'x-own': 'second' } })
    t.equal(two?.sha256, sha256(body))
    t.match(await settled.next(), {
      routing: { upstream: 'second', attempts: [{ upstream: 'first', result: 'overloaded' }, { result: 'ok' }] }, usage: { tokens: {} },
    })
  }
  first.queue({ headers: { 'content-type': 'text/event-stream' }, body: 'data: {"choices":[]}\n\ndata: {"error":{"message":"x"}}\n\n' })
  const streamed = await read(
    await call(`${url}/v1/chat/completions`, {
      body: JSON.stringify({ ...chat, stream: true, stream_options: { include_usage: true } }),
    }).reply
  )
  t.equal(streamed.bytes.toString(), replyFixture('chat_completions.include_usage.sse').toString())
  first.queue({ status: 400, body: { error: { message: 'no' } } })
  const refused = await call(`${url}/v1/chat/completions`, { body }).reply
  t.equal(refused.statusCode, 400)
  t.equal((await read(refused)).bytes.toString(), '{"error":{"message":"no"}}')
  first.queue(overloaded)
  second.queue({ stallAt: 'headers' })
  const left = call(`${url}/v1/chat/completions`, { body })
  while (second.seen.length < 4) await second.arrivals.next()
  left.request.destroy()
  t.equal(await second.seen.at(-1)?.aborted, true)
  t.equal(mounted.seen.length, 0, 'the mount\'s own upstream gets none of it')
})

t.test('over HTTP/2 a request has its attempts too', async (t) => {
  const gateway = await startPool(t, { rules: inOrder, server: { http2: true } })
  gateway.members[0]?.queue(overloaded)
  const url = await listen(gateway.app)
  const session = connect(url)
  t.teardown(() => session.close())
  const stream = session.request({
    ':method': 'POST', ':path': '/v1/chat/completions', authorization: `Bearer ${secret}`, 'content-type': 'application/json',
  })
  stream.end(JSON.stringify(chat))
  const [headers] = await once(stream, 'response')
  t.equal(headers[':status'], 200)
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  t.equal(Buffer.concat(chunks).toString(), replyFixture('chat_completions.json').toString())
})

t.test('a body that nobody has read is sent once', async (t) => {
  const [first, second] = [await startUpstream(t), await startUpstream(t)]
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(paths)
  await app.register(auth, {
    groups: { all: { protocols: everyProtocol, upstream: 'pool' } }, keys: [{ id: 'caller', group: 'all', secret }],
  })
  await app.register(upstreams, {
    upstreams: {
      first: { url: first.url, credential: async () => `one-${performance.now()}` }, second: { url: second.url, credential: 'two' },
    },
    pools: { pool: { members: ['first', { upstream: 'second', tier: 2 }] } },
  })
  await app.register(httpProxy, { ...proxyOptions(), upstream: 'http://127.0.0.1:9', prefix: '/v1', rewritePrefix: '/v1' })
  const url = await listen(app)
  first.queue(overloaded)
  const refused = await call(`${url}/v1/chat/completions`, { body: JSON.stringify(chat) }).reply
  t.equal(refused.statusCode, 503)
  t.equal((await call(`${url}/v1/chat/completions`, { body: JSON.stringify(chat) }).reply).statusCode, 200)
  t.strictSame([first.seen.length, second.seen.length], [2, 0])
  const settled = watchSettled(app)
  first.queue({ status: 401, body: {} })
  t.equal((await call(`${url}/v1/chat/completions`, { body: JSON.stringify(chat) }).reply).statusCode, 401)
  const { routing: { attempts } } = await settled.next()
  t.strictSame(attempts?.map(({ upstream, status }) => [upstream, status]), [['first', 401]], 'nor with another secret')
})

t.test('without any upstream the plugin stands by, and a base with a version of its own is told in the log', async (t) => {
  const lines: string[] = []
  const app = Fastify({ logger: { stream: { write: (line: string) => { lines.push(line) } } } })
  t.teardown(() => app.close())
  await app.register(upstreams)
  await app.ready()
  t.strictSame(lines, [])
  const other = Fastify({ logger: { stream: { write: (line: string) => { lines.push(line) } } } })
  t.teardown(() => other.close())
  await other.register(upstreams, { upstreams: { zhipu: { url: 'https://h/api/paas/v4', credential: 'x' } } })
  t.match(lines.join(), /upstreams\.zhipu\.url holds v4, which looks like a version/)
})
