import { ServerResponse, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import Fastify, { type FastifyInstance } from 'fastify'
import t from 'tap'
import llmGateway, { createRewriteUrl, proxyOptions } from '../../../plugins/index.js'
import { gatewayOptions, listen, secret } from '../../helpers/gateway.js'
import { askOnce, Wire } from '../../helpers/wire.js'
import { bearer, chat, guarded, json, mount, startApp, startProvider, upgradeOf } from './door-app.js'

const socketPaths = [
  '/v1/realtime', '/v1/responses', '/v1/anything?model=x', '/v1/', '/v1', '/v1/%2e/realtime', '/v1/v1/realtime', '/v1/responses/resp_1',
  '/v1beta/models/m:streamGenerateContent',
]

t.test('an upgrade meets the guard before its handshake, on every mount', async (t) => {
  const places: Record<string, (app: FastifyInstance, upstream: string) => Promise<void>> = {
    'an adapted mount that serves sockets': async (app, upstream) => {
      await app.register(llmGateway, guarded)
      for (const prefix of ['/v1', '/v1beta']) {
        await mount(app, upstream, { ...proxyOptions(), prefix, rewritePrefix: prefix, websocket: true })
      }
    },
    'an adapted mount that is older than the gateway': async (app, upstream) => {
      for (const prefix of ['/v1', '/v1beta']) {
        await mount(app, upstream, { ...proxyOptions(), prefix, rewritePrefix: prefix, websocket: true })
      }
      await app.register(llmGateway, guarded)
    },
    'an adapted mount of everything': async (app, upstream) => {
      await app.register(llmGateway, guarded)
      await mount(app, upstream, { ...proxyOptions(), prefix: '/', websocket: true })
    },
    'an adapted mount that passes on what nobody knows': async (app, upstream) => {
      await app.register(llmGateway, guarded)
      for (const prefix of ['/v1', '/v1beta']) {
        await mount(app, upstream, { ...proxyOptions({ unknown: 'forward' }), prefix, rewritePrefix: prefix, websocket: true })
      }
    },
    'an adapted mount, and another one that serves sockets': async (app, upstream) => {
      await app.register(llmGateway, guarded)
      for (const prefix of ['/v1', '/v1beta']) await mount(app, upstream, { ...proxyOptions(), prefix, rewritePrefix: prefix })
      await mount(app, upstream, { prefix: '/sockets', websocket: true })
    },
    'an untouched mount that serves sockets': async (app, upstream) => {
      await app.register(llmGateway, guarded)
      for (const prefix of ['/v1', '/v1beta']) await mount(app, upstream, { prefix, rewritePrefix: prefix, websocket: true })
    },
    'an untouched mount that is left what nobody knows': async (app, upstream) => {
      await app.register(llmGateway, { ...guarded, auth: { unknown: 'leave' } })
      for (const prefix of ['/v1', '/v1beta']) await mount(app, upstream, { prefix, rewritePrefix: prefix, websocket: true })
    },
    'routes of our own': async (app, upstream) => {
      await app.register(llmGateway, gatewayOptions(upstream))
    },
    'routes of our own, and a mount that serves sockets': async (app, upstream) => {
      await app.register(llmGateway, gatewayOptions(upstream))
      await mount(app, upstream, { prefix: '/sockets', websocket: true })
    },
  }
  for (const [name, build] of Object.entries(places)) {
    t.test(name, async (t) => {
      const { upstream, came } = await startProvider(t)
      const { url } = await startApp(t, async (app) => await build(app, upstream.url))
      for (const path of socketPaths) {
        for (const [headers, status] of [
          [[], 401], [['authorization: Bearer wrong', 'x-goog-api-key: wrong'], 401], [[bearer, `x-goog-api-key: ${secret}`], 426],
        ] as const) {
          const reply = await upgradeOf(url, path, ...headers)
          t.equal(reply === 'no reply' ? reply : reply.status, status, `${path} ${headers.join()}`)
        }
      }
      for (const [key, status] of [['wrong', 401], [secret, 426]] as const) {
        const reply = await upgradeOf(url, `/v1beta/live?key=${key}`)
        t.equal(reply === 'no reply' ? reply : reply.status, status, 'a key in the query')
      }
      t.strictSame(came(), [])
    })
  }
})

t.test('an adapted mount outside of the gateway\'s scope, where a hook of the host\'s lets the app start, opens no socket', async (t) => {
  const { upstream, came } = await startProvider(t)
  const { url } = await startApp(t, async (app) => {
    await app.register(async (scope) => { await scope.register(llmGateway, guarded) })
    await mount(app, upstream.url, {
      ...proxyOptions(), prefix: '/v1', rewritePrefix: '/v1', websocket: true, preHandler: async () => {},
    })
  })
  t.match(await upgradeOf(url, '/v1/realtime?model=m'), { status: 401 })
  t.strictSame(came(), [])
})

t.test('an upgrade of a path that is none of the gateway\'s meets it below an adapted mount, and is left anywhere else', async (t) => {
  const { upstream, came } = await startProvider(t)
  const { url } = await startApp(t, async (app) => {
    await app.register(llmGateway, guarded)
    await mount(app, upstream.url, { ...proxyOptions(), prefix: '/', websocket: true })
    app.get('/own', async () => 'own')
  })
  for (const [path, status] of [
    ['/realtime', 401], ['/realtime?a=b', 401], [`/realtime?key=${secret}`, 426], ['/ws/live?key=wrong', 401],
  ] as const) {
    const reply = await upgradeOf(url, path)
    t.equal(reply === 'no reply' ? reply : reply.status, status, path)
  }
  const own = await upgradeOf(url, '/own')
  t.equal(own === 'no reply' ? own : own.body, 'own')
  t.strictSame(came(), [])
})

const live = 'ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent'

t.test('an upgrade of a socket that its provider has beside the versions is answered where nobody serves it', async (t) => {
  const { upstream, came } = await startProvider(t)
  const { url } = await startApp(t, async (app) => { await app.register(llmGateway, gatewayOptions(upstream.url)) })
  for (const path of [`//${live}`, `/${live}`, `/WS//${live.slice(3)}`, `/%77s/${live.slice(3)}`, `http://h/${live}`]) {
    for (const [query, headers, status] of [
      ['', [], 401], ['?key=wrong', [], 401], [`?key=${secret}`, [], 426], ['', [`x-goog-api-key: ${secret}`], 426],
    ] as const) {
      const reply = await upgradeOf(url, path + query, ...headers)
      t.equal(reply === 'no reply' ? reply : reply.status, status, `${path} ${query} ${headers.join()}`)
    }
  }
  const other = await upgradeOf(url, `/ws/other?key=${secret}`)
  t.equal(other === 'no reply' ? other : other.status, 404)
  t.equal((await askOnce(url, [`GET //${live} HTTP/1.1`, 'host: h', `x-goog-api-key: ${secret}`])).status, 404, 'no upgrade')
  t.strictSame(came(), [])
})

t.test('a key in the query of an upgrade is looked at behind a rewriteUrl, too', async (t) => {
  const { upstream, came } = await startProvider(t)
  for (const server of [{}, { rewriteUrl: createRewriteUrl() }]) {
    const { url } = await startApp(t, async (app) => { await app.register(llmGateway, gatewayOptions(upstream.url)) }, server)
    // The first as clients open a socket whose base address ends in the version.
    for (const [path, key, status] of [
      [`/v1beta//${live}`, 'wrong', 401], [`/v1beta//${live}`, secret, 426], [`/${live}`, 'wrong', 401], [`/${live}`, secret, 426],
    ] as const) {
      const reply = await upgradeOf(url, `${path}?key=${key}`)
      t.equal(reply === 'no reply' ? reply : reply.status, status, `${path} ${key}`)
      t.notMatch(reply, { body: /No API key was given/ })
    }
  }
  t.strictSame(came(), [])
})

t.test('such an upgrade is the host\'s where a route of its own has it, or its own 404 is to answer', async (t) => {
  const { upstream, came } = await startProvider(t)
  const { url } = await startApp(t, async (app) => {
    await app.register(llmGateway, gatewayOptions(upstream.url))
    app.get(`/${live}`, async () => 'own')
  })
  const own = await upgradeOf(url, `/${live}`)
  t.equal(own === 'no reply' ? own : own.body, 'own')
  const left = await startApp(t, async (app) => {
    await app.register(llmGateway, { ...gatewayOptions(upstream.url), paths: { unknown: 'leave' } })
    app.setNotFoundHandler(async (_, reply) => await reply.code(404).send('nothing of the host'))
  })
  const nothing = await upgradeOf(left.url, `/${live}`)
  t.equal(nothing === 'no reply' ? nothing : nothing.body, 'nothing of the host')
  t.strictSame(came(), [])
})

t.test('upgrades are counted and logged like any other request', async (t) => {
  const { upstream } = await startProvider(t)
  const lines: Array<{ llm?: { outcome?: string, error?: string, status?: number } }> = []
  // Fastify's own line would hold the key otherwise.
  const app = Fastify({ rewriteUrl: createRewriteUrl(), logger: { stream: { write: (line: string) => { lines.push(JSON.parse(line)) } } } })
  t.teardown(() => app.close())
  await app.register(llmGateway, guarded)
  await mount(app, upstream.url, { ...proxyOptions(), prefix: '/v1', rewritePrefix: '/v1', websocket: true })
  const url = await listen(app)
  for (const path of ['/v1/realtime', '/v1/anything']) await upgradeOf(url, path)
  await upgradeOf(url, '/v1/realtime', bearer)
  await new Promise((resolve) => setTimeout(resolve, 50))
  const { body } = await app.inject('/metrics')
  t.match(body, /llm_gateway_auth_failures_total\{protocol="sockets",reason="missing_api_key"\} 2/)
  t.match(body, /llm_gateway_requests_total\{protocol="sockets",.*outcome="auth_error"\} 2/)
  t.strictSame(lines.flatMap(({ llm }) => llm === undefined ? [] : [[llm.outcome, llm.error, llm.status]]), [
    ['auth_error', 'missing_api_key', 401], ['auth_error', 'missing_api_key', 401], ['client_error', 'upgrade_required', 426],
  ])
  t.notOk(JSON.stringify(lines).includes(secret))
})

t.test('any other upgrade is one to ignore', async (t) => {
  for (const adapted of [true, false]) {
    const { upstream, came } = await startProvider(t)
    const { url } = await startApp(t, async (app) => {
      await app.register(llmGateway, guarded)
      await mount(app, upstream.url, { ...adapted && proxyOptions(), prefix: '/v1', rewritePrefix: '/v1' })
    })
    const offer = ['host: h', 'connection: Upgrade, HTTP2-Settings', 'upgrade: h2c', 'http2-settings: AAMAAABkAAQAAP__', json]
    const reply = await askOnce(url, ['POST /v1/chat/completions HTTP/1.1', ...offer, bearer], chat)
    t.equal(reply.status, 200, reply.body)
    t.notMatch(came().join(), /h2c|http2-settings/i)
    t.equal((await askOnce(url, ['POST /v1/chat/completions HTTP/1.1', ...offer], chat)).status, 401)
    t.equal(came().length, 1)
  }
})

t.test('an offer is ignored on a server that takes upgrades for sockets, too, and the connection goes on', async (t) => {
  const { upstream, came } = await startProvider(t)
  const { url } = await startApp(t, async (app) => {
    await app.register(llmGateway, guarded)
    await mount(app, upstream.url, { ...proxyOptions(), prefix: '/v1', rewritePrefix: '/v1', websocket: true })
    app.get('/own', async () => 'own')
  })
  const offer = ['host: h', 'Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'http2-settings: AAMAAABkAAQAAP__', json, bearer]
  const wire = new Wire(url)
  t.teardown(() => wire.destroy())
  for (let turn = 0; turn < 2; turn += 1) {
    const reply = await wire.ask(['POST /v1/chat/completions HTTP/1.1', ...offer], chat)
    t.equal(reply.status, 200, reply.body)
  }
  wire.send(['POST /v1/v1/chat/completions?a=b HTTP/1.1', ...offer, 'transfer-encoding: chunked', '', ''].join('\r\n'))
  await new Promise((resolve) => setTimeout(resolve, 50))
  wire.send(`${chat.length.toString(16)}\r\n${chat}\r\n0\r\n\r\n`)
  t.equal((await wire.reply()).status, 200, 'a body that comes later')
  t.strictSame(came().map((line) => [line.endsWith(chat), /h2c|http2-settings/i.test(line), line.split(' ')[1]]), [
    [true, false, '/v1/chat/completions'], [true, false, '/v1/chat/completions'], [true, false, '/v1/chat/completions?a=b'],
  ])
  t.equal((await wire.ask(['POST /v1/chat/completions HTTP/1.1', ...offer.slice(0, -1)], chat)).status, 401)
  t.equal((await askOnce(url, ['POST /v1/chat/completions HTTP/1.1', ...offer, 'connection: close'], chat)).headers['connection'], 'close')
  t.equal((await askOnce(url, ['GET /v1/models HTTP/1.1', ...offer])).status, 200)
  t.equal((await askOnce(url, ['POST /v1/nothing HTTP/1.1', ...offer], chat)).status, 404)
  t.equal((await askOnce(url, ['GET /own HTTP/1.1', ...offer])).body, 'own')
})

t.test('a server that asks which offers it is to take leaves those of model requests', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  Reflect.set(app.server, 'shouldUpgradeCallback', ({ url }: IncomingMessage) => url !== '/none')
  await app.register(llmGateway, gatewayOptions('http://127.0.0.1:9'))
  const takes: unknown = Reflect.get(app.server, 'shouldUpgradeCallback')
  const isTaken = (url: string, upgrade: string): unknown => (
    Reflect.apply(Object(takes), app.server, [{ method: 'POST', url, headers: { connection: 'upgrade', upgrade }, upgrade: true }])
  )
  for (const [url, upgrade, isExpected] of [
    ['/v1/chat/completions', 'h2c', false], ['/v1/v1/messages', 'tcp', false], ['/v1/chat/completions', 'websocket', true],
    ['/own', 'h2c', true], ['/none', 'h2c', false],
  ] as const) {
    t.equal(isTaken(url, upgrade), isExpected, `${url} ${upgrade}`)
  }
})

t.test('an offer is ignored whoever listens for upgrades', async (t) => {
  const { upstream } = await startProvider(t)
  const { url } = await startApp(t, async (app) => {
    await app.register(llmGateway, gatewayOptions(upstream.url))
    app.server.on('upgrade', (raw: IncomingMessage, socket: Socket) => {
      const reply = new ServerResponse(raw)
      reply.assignSocket(socket)
      app.routing(raw, reply)
    })
  })
  t.equal((await askOnce(url, ['GET /v1/models HTTP/1.1', 'host: h', 'connection: upgrade', 'upgrade: h2c', bearer])).status, 200)
})

t.test('the connection of an answered upgrade ends, whoever routed it', async (t) => {
  const { upstream } = await startProvider(t)
  const { app, url } = await startApp(t, async (app) => {
    await app.register(llmGateway, guarded)
    await mount(app, upstream.url, { ...proxyOptions(), prefix: '/', rewritePrefix: '' })
    // As `@fastify/websocket` does, which ends only what passed a hook of its own: registered after the gateway, it sees no refusal.
    app.server.on('upgrade', (raw: IncomingMessage, socket: Socket) => {
      const reply = new ServerResponse(raw)
      reply.assignSocket(socket)
      app.routing(raw, reply)
    })
  })
  const preflight = ['origin: https://page.example', 'access-control-request-method: POST']
  for (const [status, line, ...headers] of [
    [401, 'GET /v1/realtime', 'upgrade: websocket'], [426, 'GET /v1/realtime', 'upgrade: websocket', bearer],
    [401, 'GET /elsewhere', 'upgrade: websocket'], [404, 'POST /v1/unknown', 'upgrade: h2c'],
    [204, 'OPTIONS /v1/models', 'upgrade: h2c', ...preflight],
  ] as const) {
    const wire = new Wire(url)
    const reply = await wire.ask([`${line} HTTP/1.1`, 'host: h', 'connection: upgrade', ...headers])
    t.match(reply, { status, headers: { connection: 'close' } }, line)
    await wire.closed()
  }
  t.notMatch((await app.inject('/metrics')).body, /active_requests\{.*\} [1-9]/)
})

t.test('hooks of the host find no key in the query of an upgrade', async (t) => {
  const found: string[] = []
  const { url } = await startApp(t, async (app) => {
    app.addHook('onResponse', async ({ query, raw }) => { found.push(JSON.stringify([query, raw.url])) })
    await app.register(llmGateway, gatewayOptions('http://127.0.0.1:9'))
  })
  for (const path of ['/v1beta/live', '/v1beta/models/m:streamGenerateContent']) {
    const reply = await upgradeOf(url, `${path}?a=b&key=${secret}`)
    t.equal(reply === 'no reply' ? reply : reply.status, 426)
  }
  while (found.length < 2) await new Promise(setImmediate)
  t.match(found, [/"a":"b"/, /"a":"b"/])
  t.notMatch(found.join(), secret)
})
