import httpProxy from '@fastify/http-proxy'
import Fastify, { type FastifyReply, type FastifyRequest } from 'fastify'
import t from 'tap'
import llmGateway, { proxyOptions } from '../../plugins/index.js'
import { everyProtocol, gatewayOptions, secret } from '../helpers/gateway.js'
import { replyFixture, sha256, startUpstream } from '../helpers/upstream.js'
import { chat, headers, startSeam } from './mount-hosts.js'

t.test('a host that answers for an upstream that is away is heard', async (t) => {
  const gone = 'http://127.0.0.1:1'
  for (const [answer, expected] of [
    [(reply: FastifyReply) => reply.code(503).send({ host: 'away' }), [503, { host: 'away' }]],
    [(reply: FastifyReply, { error }: { error: Error }) => reply.send(error), [502, { error: { code: 'upstream_unreachable' } }]],
  ] as const) {
    const app = await startSeam(t, gone, { onError: answer })
    await app.register(llmGateway, {
      groups: { all: { protocols: everyProtocol } }, keys: [{ id: 'a', group: 'all', secret }], routes: false,
    })
    const reply = await app.inject({ method: 'POST', url: '/v1/chat/completions', headers, payload: chat })
    t.match([reply.statusCode, reply.json()], expected)
  }
})

t.test('a mount that adds nothing to requests keeps its say in the headers of replies', async (t) => {
  const upstream = await startUpstream(t)
  const app = await startSeam(t, upstream.url, { rewriteHeaders: (kept: Record<string, unknown>) => ({ ...kept, 'x-from-host': 'yes' }) })
  await app.register(llmGateway, {
    ...gatewayOptions(upstream.url), groups: { all: { protocols: everyProtocol, upstream: 'main' } }, routes: false,
  })
  // The first shows that the mount reaches its transport; the second goes past reply-from.
  for (const time of ['first', 'second']) {
    const reply = await app.inject({
      method: 'POST',
      url: '/v1/chat/completions',
      headers: { ...headers, connection: 'x-listed', 'x-listed': 'no', cookie: 'a=b' },
      payload: chat,
    })
    t.match([reply.statusCode, reply.headers['x-from-host']], [200, 'yes'], time)
    t.equal(sha256(reply.rawPayload), sha256(replyFixture('chat_completions.json')))
    const seen = await upstream.requests.next()
    t.equal(seen.sha256, sha256(chat), 'bytes as received')
    t.match([seen.headers['x-listed'], seen.headers.cookie, seen.headers.authorization], [
      undefined, undefined, 'Bearer provider-secret-9876543210',
    ])
  }
})

t.test('a mount may change the headers of replies in place', async (t) => {
  const upstream = await startUpstream(t)
  const app = await startSeam(t, upstream.url, { rewriteHeaders: (kept: Record<string, unknown>) => { kept['x-from-host'] = 'yes' } })
  await app.register(llmGateway, {
    ...gatewayOptions(upstream.url), groups: { all: { protocols: everyProtocol, upstream: 'main' } }, routes: false,
  })
  for (const time of ['first', 'second']) {
    const reply = await app.inject({ method: 'POST', url: '/v1/chat/completions', headers, payload: chat })
    t.match([reply.statusCode, reply.headers['x-from-host']], [200, 'yes'], time)
  }
})

t.test('a mount makes no destination that nobody uses, and each hook on its routes still has a say', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  await app.register(llmGateway, {
    ...gatewayOptions(upstream.url),
    groups: { all: { protocols: everyProtocol, upstream: 'main' }, mounts: { protocols: everyProtocol } },
    keys: [{ id: 'caller', group: 'all', secret }, { id: 'other', group: 'mounts', secret: 'secret-of-the-mounts-group' }],
    routes: false,
  })
  // As @fastify/rate-limit adds its hook: behind the mount's own.
  app.addHook('onRoute', (route) => {
    route.preHandler = [route.preHandler ?? [], async (request: FastifyRequest, reply: FastifyReply) => {
      if (request.headers['x-refused'] === 'yes') await reply.code(429).send('too many')
      // Read by http-proxy alone, for its destination.
      Object.defineProperty(request, 'params', { get: () => { destinations += 1; return {} } })
    }].flat()
  })
  let destinations = 0
  const mount = {
    upstream: upstream.url,
    prefix: '/v1',
    rewritePrefix: '/v1',
    replyOptions: { rewriteHeaders: (kept: Record<string, unknown>) => ({ ...kept, 'x-from-host': 'yes' }) },
    ...proxyOptions(),
  }
  await app.register(httpProxy, mount)
  t.teardown(() => app.close())
  const ask = async (more: Record<string, string>): Promise<[status: number, rewritten: unknown]> => {
    const reply = await app.inject({ method: 'POST', url: '/v1/chat/completions', headers: { ...headers, ...more }, payload: chat })
    return [reply.statusCode, reply.headers['x-from-host']]
  }
  for (const expected of [[200, 'yes'], [200, 'yes'], [200, 'yes']]) t.same(await ask({}), expected)
  t.equal(destinations, 1)
  t.same(await ask({ authorization: 'Bearer secret-of-the-mounts-group' }), [200, 'yes'])
  t.equal(destinations, 2, 'a group without an upstream goes where the mount goes')
  t.same(await ask({ 'x-refused': 'yes' }), [429, undefined])
  t.same(await ask({ authorization: 'Bearer wrong' }), [401, undefined])
  t.equal((await app.inject({ method: 'GET', url: '/v1/files', headers })).statusCode, 404)
  t.equal(upstream.requests.size, 4)
})

t.test('a preRewrite that refuses is asked each time', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  await app.register(llmGateway, {
    ...gatewayOptions(upstream.url), groups: { all: { protocols: everyProtocol, upstream: 'main' } }, routes: false,
  })
  const preRewrite = (url: string): string => {
    if (url.includes('refused')) throw Object.assign(new Error('not this one'), { statusCode: 418 })
    return url
  }
  const mount = { upstream: upstream.url, prefix: '/v1', rewritePrefix: '/v1', preRewrite, ...proxyOptions() }
  await app.register(httpProxy, mount)
  t.teardown(() => app.close())
  for (const [status, query] of [[200, ''], [200, ''], [418, '?refused']] as const) {
    t.equal((await app.inject({ method: 'POST', url: `/v1/chat/completions${query}`, headers, payload: chat })).statusCode, status)
  }
})
