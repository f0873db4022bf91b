import { ServerResponse, type IncomingMessage } from 'node:http'
import { createServer } from 'node:http2'
import type { Socket } from 'node:net'
import cors from '@fastify/cors'
import httpProxy, { type FastifyHttpProxyOptions } from '@fastify/http-proxy'
import replyFrom from '@fastify/reply-from'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest, type FastifyServerOptions } from 'fastify'
import t, { type Test } from 'tap'
import llmGateway, {
  auth, createRewriteUrl, forward, metrics, paths, proxyOptions, upstreams, validation, type LlmGatewayOptions,
} from '../../plugins/index.js'
import { everyProtocol, gatewayOptions, listen, secret } from '../helpers/gateway.js'
import { hostAuth } from '../helpers/host.js'
import { startUpstream, type Upstream } from '../helpers/upstream.js'
import { askOnce, Wire, type RawReply } from '../helpers/wire.js'

const mountSecret = 'canary-mount-secret'
const groupSecret = 'canary-group-secret'
const socketHeaders = [
  'host: h', 'connection: Upgrade', 'upgrade: websocket', 'sec-websocket-version: 13', 'sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==',
]
const chat = '{"model":"m","messages":[{"role":"user","content":"hi"}]}'
const json = 'content-type: application/json'
const bearer = `authorization: Bearer ${secret}`
const guarded: LlmGatewayOptions = {
  groups: { all: { protocols: everyProtocol } }, keys: [{ id: 'caller', group: 'all', secret }], routes: false,
}

interface Provider {
  readonly upstream: Upstream
  /** Everything that came, upgrades included, one line each with its headers. */
  readonly came: () => string[]
}

async function startProvider (t: Test): Promise<Provider> {
  const upstream = await startUpstream(t)
  upstream.respond = ({ method }) => method === 'POST' ? null : { body: { ok: true } }
  const upgrades: string[] = []
  upstream.server.on('upgrade', ({ method, url, rawHeaders }, socket) => {
    upgrades.push(`UPGRADE ${method} ${url} ${rawHeaders.join(' ')}`)
    socket.destroy()
  })
  return {
    upstream,
    came: () => [
      ...upstream.seen.map(({ method, url, rawHeaders, body }) => `${method} ${url} ${rawHeaders.join(' ')} ${body.toString()}`),
      ...upgrades,
    ],
  }
}

interface Sends {
  readonly from: (dest: string, options: object) => unknown
}

type Mount = Record<string, unknown> & Pick<FastifyHttpProxyOptions, 'prefix'>

/** A mount of the host's, with a credential of its own on requests and on sockets. */
async function mount (app: FastifyInstance, upstream: string, options: Mount): Promise<void> {
  const headers = { authorization: `Bearer ${mountSecret}`, 'x-mount': 'yes' }
  const replyOptions = { rewriteRequestHeaders: (_: unknown, given: object) => ({ ...given, ...headers }) }
  const all: { upstream: string } = Object.assign({ upstream, replyOptions, wsClientOptions: { headers } }, options)
  await app.register(httpProxy, all)
}

async function startApp (
  t: Test, build: (app: FastifyInstance) => Promise<void>, options: FastifyServerOptions = {}
): Promise<{ app: FastifyInstance, url: string }> {
  const app = Fastify(options)
  t.teardown(() => app.close())
  await build(app)
  return { app, url: await listen(app) }
}

async function upgradeOf (url: string, path: string, ...headers: string[]): Promise<RawReply | 'no reply'> {
  const late = new Promise<'no reply'>((resolve) => setTimeout(resolve, 2_000, 'no reply').unref())
  return await Promise.race([askOnce(url, [`GET ${path} HTTP/1.1`, ...socketHeaders, ...headers]), late])
}

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

t.test('a preflight never goes upstream', async (t) => {
  const preflight = [
    'host: h', 'origin: https://page.example', 'access-control-request-method: POST', 'access-control-request-headers: authorization',
    bearer, 'x-goog-api-key: canary', 'cookie: canary',
  ]
  const places: Record<string, (app: FastifyInstance, upstream: string) => Promise<void>> = {
    'an adapted mount': async (app, upstream) => {
      await app.register(llmGateway, guarded)
      for (const prefix of ['/v1', '/v1beta']) await mount(app, upstream, { ...proxyOptions(), prefix, rewritePrefix: prefix })
    },
    'an adapted mount of everything': async (app, upstream) => {
      await app.register(llmGateway, guarded)
      await mount(app, upstream, { ...proxyOptions(), prefix: '/' })
    },
    'an adapted mount that passes on what nobody knows': async (app, upstream) => {
      await app.register(llmGateway, guarded)
      await mount(app, upstream, { ...proxyOptions({ unknown: 'forward' }), prefix: '/' })
    },
    'an adapted mount without keys': async (app, upstream) => {
      await app.register(paths)
      await mount(app, upstream, { ...proxyOptions(), prefix: '/' })
    },
    'an adapted mount beside plugins that guard nothing': async (app, upstream) => {
      await app.register(metrics)
      await mount(app, upstream, { ...proxyOptions(), prefix: '/' })
    },
    'an untouched mount': async (app, upstream) => {
      await app.register(llmGateway, guarded)
      for (const prefix of ['/v1', '/v1beta']) await mount(app, upstream, { prefix, rewritePrefix: prefix })
    },
    'routes of our own': async (app, upstream) => {
      await app.register(llmGateway, gatewayOptions(upstream))
    },
  }
  for (const [name, build] of Object.entries(places)) {
    const { upstream, came } = await startProvider(t)
    const { url } = await startApp(t, async (app) => await build(app, upstream.url))
    for (const path of [
      '/v1/chat/completions', '/v1/v1/messages', '/v1/responses/resp_1', '/v1beta/models/m:generateContent',
      ...name.includes('mount') ? ['/v1/anything', '/v1'] : [],
    ]) {
      const reply = await askOnce(url, [`OPTIONS ${path} HTTP/1.1`, ...preflight])
      t.match([reply.status, reply.body], [204, ''], `${name}: ${path}`)
      t.strictSame(Object.keys(reply.headers).filter((name) => name.startsWith('access-control')), [])
    }
    t.strictSame(came(), [], name)
  }
})

t.test('preflights of a host that has CORS are answered by it, and its word on who may read a reply stays', async (t) => {
  for (const rewriting of [false, true]) {
    const { upstream, came } = await startProvider(t)
    const { url } = await startApp(t, async (app) => {
      await app.register(cors, { origin: 'https://page.example' })
      await app.register(llmGateway, guarded)
      await mount(app, upstream.url, { ...proxyOptions(), prefix: '/v1', rewritePrefix: '/v1', ...!rewriting && { replyOptions: {} } })
    })
    const reply = await askOnce(url, [
      'OPTIONS /v1/chat/completions HTTP/1.1', 'host: h', 'origin: https://page.example', 'access-control-request-method: POST',
    ])
    t.match([reply.status, reply.headers['access-control-allow-origin']], [204, 'https://page.example'])
    t.strictSame(came(), [])
    upstream.queue({ fixture: 'chat_completions.json', headers: { 'access-control-allow-origin': '*' } })
    const read = await askOnce(url, ['POST /v1/chat/completions HTTP/1.1', 'host: h', 'origin: https://page.example', bearer, json], chat)
    t.match([read.status, read.headers['access-control-allow-origin']], [200, 'https://page.example'])
  }
})

t.test('what is below an adapted mount and no endpoint is answered here, whatever its path', async (t) => {
  const { upstream, came } = await startProvider(t)
  const { url } = await startApp(t, async (app) => {
    await app.register(llmGateway, guarded)
    await mount(app, `${upstream.url}/v1/`, { ...proxyOptions(), prefix: '/' })
  })
  for (const path of ['/files', '/realtime', '/anything', '/']) {
    for (const method of ['GET', 'POST', 'DELETE', 'OPTIONS', 'HEAD']) {
      for (const key of [[], [bearer]]) {
        const reply = await askOnce(url, [`${method} ${path} HTTP/1.1`, 'host: h', ...key, 'content-length: 0', 'connection: close']).catch(
          () => null
        )
        // A reply to HEAD has a length and no body.
        if (method !== 'HEAD') t.equal(reply?.status, 404, `${method} ${path}`)
      }
    }
  }
  t.strictSame(came(), [])
})

const ownGroup = {
  upstreams: { own: { url: 'replaced', credential: groupSecret }, bare: { url: 'replaced' } },
  groups: { all: { protocols: everyProtocol, upstream: 'own' }, bare: { protocols: everyProtocol, upstream: 'bare' } },
  keys: [{ id: 'caller', group: 'all', secret }, { id: 'other', group: 'bare', secret: 'sk-bare' }],
  routes: false,
} as const

function ownOptions (url: string): LlmGatewayOptions {
  return {
    ...ownGroup,
    upstreams: { own: { url, credential: groupSecret }, bare: { url } },
    groups: { ...ownGroup.groups },
    keys: [...ownGroup.keys],
  }
}

t.test('a request that goes elsewhere than its mount takes none of the mount\'s credentials along', async (t) => {
  const group = await startProvider(t)
  const mounted = await startProvider(t)
  const { url } = await startApp(t, async (app) => {
    await app.register(llmGateway, ownOptions(group.upstream.url))
    for (const prefix of ['/v1', '/v1beta']) {
      await app.register(httpProxy, {
        ...proxyOptions(),
        upstream: mounted.upstream.url,
        prefix,
        rewritePrefix: prefix,
        replyOptions: {
          queryString: () => `key=${mountSecret}`,
          rewriteRequestHeaders: (_, given) => ({
            ...given,
            'X-Some-Provider-Token': mountSecret,
            'user-agent': 'the mount',
            Authorization: `Bearer ${mountSecret}`,
            authorization: `Bearer ${mountSecret}`,
            'X-Api-Key': mountSecret,
            'api-key': mountSecret,
            'x-goog-api-key': mountSecret,
            x_goog_api_key: mountSecret,
            Cookie: mountSecret,
            'proxy-authorization': mountSecret,
          }),
        },
      })
    }
  })
  const calls = [
    ['/v1/chat/completions', chat, 'authorization', `Bearer ${groupSecret}`],
    ['/v1/messages', '{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}', 'x-api-key', groupSecret],
    ['/v1beta/models/m:generateContent', '{"contents":[{"parts":[{"text":"x"}]}]}', 'x-goog-api-key', groupSecret],
  ] as const
  for (const [path, body, name, expected] of calls) {
    for (const [key, credential] of [[secret, expected], ['sk-bare', undefined]] as const) {
      const carrier = path.includes('beta') ? `x-goog-api-key: ${key}` : `authorization: Bearer ${key}`
      const reply = await askOnce(url, [`POST ${path} HTTP/1.1`, 'host: h', carrier, json, 'anthropic-version: 2023-06-01'], body)
      t.equal(reply.status, 200, reply.body)
      const { headers, rawHeaders, url: seen } = await group.upstream.requests.next()
      t.match([headers[name], headers['user-agent'], seen], [credential, 'the mount', path])
      const sent = rawHeaders.join().replace(groupSecret, '')
      t.notMatch(sent, /canary|sk-/, `${path} ${key}`)
    }
  }
  t.strictSame(mounted.came(), [])
})

const transports: Record<string, () => object> = {
  'an undici of the mount\'s own': () => ({ ...proxyOptions(), undici: { connections: 2 } }),
  'an http of the mount\'s own': () => ({ ...proxyOptions(), http: {} }),
  'an http2 of the mount\'s own': () => ({ ...proxyOptions(), http2: true }),
}

const otherMounts: Record<string, () => object> = {
  'a mount that nobody adapted': () => ({}),
  'a mount that nobody adapted and that parses bodies': () => ({ proxyPayloads: false }),
}

const mountReplies = [{}, { rewriteRequestHeaders: (_: unknown, given: object) => ({ ...given, authorization: `Bearer ${mountSecret}` }) }]

t.test('a group with an upstream of its own goes nowhere else', async (t) => {
  for (const [name, transport] of Object.entries({ ...transports, ...otherMounts })) {
    const firsts = name in transports ? ['mount'] as const : ['mount', 'gateway'] as const
    for (const [first, replyOptions] of firsts.flatMap((first) => mountReplies.map((options) => [first, options] as const))) {
      const group = await startProvider(t)
      const mounted = await startProvider(t)
      const streams: string[] = []
      const http2 = createServer((request) => { streams.push(request.url) })
      t.teardown(() => http2.close())
      await new Promise<void>((resolve) => http2.listen(0, '127.0.0.1', resolve))
      const { port } = Object(http2.address())
      const upstream = name.includes('http2') ? `http://127.0.0.1:${port}` : mounted.upstream.url
      const { app, url } = await startApp(t, async (app) => {
        if (first === 'gateway') await app.register(llmGateway, ownOptions(group.upstream.url))
        await mount(app, upstream, { prefix: '/v1', rewritePrefix: '/v1', replyOptions, ...transport() })
        if (first === 'mount') await app.register(llmGateway, ownOptions(group.upstream.url))
      })
      for (let turn = 0; turn < 2; turn += 1) {
        const reply = await askOnce(url, ['POST /v1/chat/completions HTTP/1.1', 'host: h', bearer, json], chat)
        t.match([reply.status, JSON.parse(reply.body)], [500, { error: { code: 'internal_error' } }], `${name}, ${first} first`)
      }
      t.strictSame([...mounted.came(), ...group.came(), ...streams], [], `${name}, ${first} first`)
      await app.close()
    }
  }
})

t.test('what a mount with proxyOptions() sends past their handler goes nowhere', async (t) => {
  const ways: ReadonlyArray<[name: string, options: object]> = [
    ['a handler of its own', { handler: (_: unknown, reply: Sends, dest: string, options: object) => reply.from(dest, options) }],
    ['a hook that sends', { preHandler: ({ raw }: { raw: IncomingMessage }, reply: Sends) => { reply.from(String(raw.url), {}) } }],
  ]
  for (const [name, options] of ways) {
    for (const own of [true, false]) {
      const group = await startProvider(t)
      const mounted = await startProvider(t)
      const { url } = await startApp(t, async (app) => {
        await mount(app, mounted.upstream.url, { ...proxyOptions(), prefix: '/v1', rewritePrefix: '/v1', ...options })
        await app.register(llmGateway, own ? ownOptions(group.upstream.url) : guarded)
      })
      t.equal((await askOnce(url, ['POST /v1/chat/completions HTTP/1.1', 'host: h', bearer, json], chat)).status, 502, name)
      t.strictSame([...mounted.came(), ...group.came()], [], `${name}: neither to the mount's upstream, nor the caller's key to anybody`)
    }
  }
  for (const prefix of ['/v1', undefined]) {
    const app = Fastify()
    t.teardown(() => app.close())
    await app.register(llmGateway, guarded)
    await mount(app, 'http://127.0.0.1:9', { ...prefix !== undefined && { prefix }, ...proxyOptions(), ...ways[0]?.[1] })
    const message = new RegExp(`mount at ${prefix ?? '/'}, which has a handler of its own`)
    await t.rejects(async () => await app.ready(), { code: 'LLM_GATEWAY_OPTION', message })
  }
})

t.test('a mount whose transport does not go to the upstreams of groups fails the start', async (t) => {
  for (const [name, transport] of Object.entries(transports)) {
    for (const [options, at, fails] of [
      [ownOptions('http://127.0.0.1:9'), '/v1', true], [ownOptions('http://127.0.0.1:9'), undefined, true], [guarded, '/v1', false],
    ] as const) {
      const app = Fastify()
      t.teardown(() => app.close())
      await app.register(llmGateway, options)
      await mount(app, 'http://127.0.0.1:9', { ...at !== undefined && { prefix: at }, ...transport() })
      const message = new RegExp(`mount at ${at ?? '/'}, which has an undici`)
      if (fails) await t.rejects(async () => await app.ready(), { code: 'LLM_GATEWAY_OPTION', message }, name)
      else await t.resolves(async () => await app.ready(), name)
    }
  }
})

t.test('without the guard nothing of a guarded app is sent', async (t) => {
  const { upstream, came } = await startProvider(t)
  const { url } = await startApp(t, async (app) => {
    await app.register(upstreams, { upstreams: { main: { url: upstream.url, credential: groupSecret } } })
    await app.register(forward)
    await app.register(validation)
    await mount(app, upstream.url, { ...proxyOptions(), prefix: '/x/v1', websocket: true })
    await app.register(async (scope) => { await scope.register(auth, hostAuth) })
  })
  t.equal((await askOnce(url, ['POST /v1/chat/completions HTTP/1.1', 'host: h', json], chat)).status, 500)
  t.strictSame(came(), [])
})

t.test('a mount outside of the scope that asks for keys, with the plugins around both, passes nothing', async (t) => {
  for (const more of [proxyOptions, () => ({})]) {
    const { upstream, came } = await startProvider(t)
    const { url } = await startApp(t, async (app) => {
      await app.register(paths)
      await mount(app, upstream.url, { ...more(), prefix: '/v1', rewritePrefix: '/v1' })
      await app.register(async (scope) => { await scope.register(auth, hostAuth) })
    })
    for (const key of [[], [bearer]]) {
      const reply = await askOnce(url, ['POST /v1/chat/completions HTTP/1.1', 'host: h', json, ...key], chat)
      t.equal(reply.status, 500, reply.body)
    }
    t.strictSame(came(), [])
  }
})

t.test('a mount of some hosts alone is guarded, too', async (t) => {
  const { upstream, came } = await startProvider(t)
  const { url } = await startApp(t, async (app) => {
    await app.register(llmGateway, guarded)
    await mount(app, upstream.url, { prefix: '/v1', rewritePrefix: '/v1', constraints: { host: 'h' } })
  })
  t.equal((await askOnce(url, ['GET /v1/files HTTP/1.1', 'host: h'])).status, 404)
  t.equal((await askOnce(url, ['POST /v1/chat/completions HTTP/1.1', 'host: h', json], chat)).status, 401)
  t.strictSame(came(), [])
  t.equal((await askOnce(url, ['POST /v1/chat/completions HTTP/1.1', 'host: h', json, bearer], chat)).status, 200)
})

t.test('a mount is guarded however its routes spell where it stands', async (t) => {
  const cases: ReadonlyArray<[name: string, options: Mount, server: FastifyServerOptions]> = [
    ['a wildcard that ends a segment', { prefix: '/v1', routes: ['*'] }, {}],
    ['a parameter that ends a segment', { prefix: '/v:number' }, {}],
    ['letters that do not count', { prefix: '/V1' }, { routerOptions: { caseSensitive: false } }],
  ]
  for (const [name, options, server] of cases) {
    const { upstream, came } = await startProvider(t)
    const { url } = await startApp(t, async (app) => {
      await app.register(llmGateway, guarded)
      await mount(app, upstream.url, { ...options, rewritePrefix: '/v1', websocket: true })
    }, server)
    for (const path of ['/v1/files', '/v1/batches/b']) t.equal((await askOnce(url, [`GET ${path} HTTP/1.1`, 'host: h'])).status, 404, name)
    const preflight = ['origin: https://a.example', 'access-control-request-method: POST']
    t.equal((await askOnce(url, ['OPTIONS /v1/messages HTTP/1.1', 'host: h', ...preflight])).status, 204, name)
    const reply = await upgradeOf(url, '/v1/realtime')
    t.equal(reply === 'no reply' ? reply : reply.status, 401, name)
    t.strictSame(came(), [], name)
    t.equal((await askOnce(url, ['POST /v1/chat/completions HTTP/1.1', 'host: h', json, bearer], chat)).status, 200, name)
  }
})

t.test('a mount of everything beside one of models is the host\'s', async (t) => {
  const models = await startProvider(t)
  const site = await startProvider(t)
  const { url } = await startApp(t, async (app) => {
    await app.register(llmGateway, guarded)
    for (const prefix of ['/v1', '/v1beta']) await mount(app, models.upstream.url, { ...proxyOptions(), prefix, rewritePrefix: prefix })
    await mount(app, site.upstream.url, { prefix: '/' })
  })
  for (const path of ['/', '/page', '/v1alpha/page']) t.equal((await askOnce(url, [`GET ${path} HTTP/1.1`, 'host: h'])).status, 200, path)
  t.equal(site.came().length, 3)
  t.strictSame(models.came(), [])
})

t.test('a mount outside of the scope of its gateway passes nothing, where a hook of its own keeps the start from telling', async (t) => {
  const { upstream, came } = await startProvider(t)
  const { url } = await startApp(t, async (app) => {
    await app.register(async (scope) => { await scope.register(llmGateway, guarded) })
    const preHandler = (_request: unknown, _reply: unknown, done: () => void): void => done()
    await mount(app, upstream.url, { ...proxyOptions(), prefix: '/v1', rewritePrefix: '/v1', websocket: true, preHandler })
  })
  t.equal((await askOnce(url, ['POST /v1/chat/completions HTTP/1.1', 'host: h', json], chat)).status, 500)
  const reply = await upgradeOf(url, '/v1/realtime')
  t.equal(reply === 'no reply' ? reply : reply.status, 401)
  t.strictSame(came(), [])
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

t.test('a request whose path is repaired behind the guard is asked for its key once', async (t) => {
  const upstream = await startUpstream(t)
  let hits = 0
  const { app } = await startApp(t, async (app) => {
    await app.register(metrics)
    await app.register(auth, { groups: { all: { protocols: everyProtocol } }, keys: [{ id: 'caller', group: 'all', secret }] })
    await app.register(paths)
    await app.register(upstreams, { upstreams: { main: { url: upstream.url, credential: 'x' } } })
    await app.register(forward)
  })
  const reply = await app.inject({
    method: 'POST',
    url: '/v1/v1/chat/completions',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    payload: chat,
  })
  t.equal(reply.statusCode, 200)
  for (const [, count] of (await app.inject('/metrics')).body.matchAll(/^llm_gateway_key_lookups_total\{.*\} (\d+)$/gm)) {
    hits += Number(count)
  }
  t.equal(hits, 1)
})

t.test('a not-found handler that sends what it is asked passes nothing on that a mount would not', async (t) => {
  const asked = ['origin: https://page.example', 'access-control-request-method: POST']
  const { groups, keys = [] } = guarded
  const places: Record<string, (app: FastifyInstance) => Promise<void>> = {
    'the bundle': async (app) => { await app.register(llmGateway, guarded) },
    'auth alone': async (app) => { await app.register(auth, { groups, keys }) },
    'a bundle that leaves unknown paths to the host': async (app) => {
      await app.register(llmGateway, { ...guarded, paths: { unknown: 'leave' } })
    },
  }
  for (const [name, register] of Object.entries(places)) {
    const { upstream, came } = await startProvider(t)
    const { url } = await startApp(t, async (app) => {
      await app.register(replyFrom, { base: upstream.url })
      await register(app)
      app.setNotFoundHandler((request, reply) => { reply.from(request.raw.url) })
    })
    const ask = async (method: string, path: string, ...headers: string[]): Promise<number> => (
      await askOnce(url, [`${method} ${path} HTTP/1.1`, 'host: h', ...headers])
    ).status
    t.equal(await ask('GET', '/v1/models'), 401, name)
    t.equal(await ask('GET', '/v1/files'), 404)
    t.equal(await ask('GET', '/v1/files', bearer), 404)
    t.equal(await ask('OPTIONS', '/v1/files', ...asked), 204)
    t.equal(await ask('OPTIONS', '/v1/models', ...asked), 204)
    t.ok([401, 404].includes(await ask('GET', '/v1/realtime', ...socketHeaders.slice(1))))
    t.strictSame(came(), [], 'none of those went to the provider')
    t.equal(await ask('GET', '/v1/models', bearer), 200)
    t.equal(await ask('GET', '/files'), 200, 'what is none of ours is the host\'s')
    t.equal(came().length, 2)
  }
  const { upstream, came } = await startProvider(t)
  const { url } = await startApp(t, async (app) => {
    await app.register(replyFrom, { base: upstream.url })
    await app.register(auth, { groups, keys, unknown: 'leave' })
    app.setNotFoundHandler((request, reply) => { reply.from(request.raw.url) })
  })
  t.equal((await askOnce(url, ['GET /v1/files HTTP/1.1', 'host: h'])).status, 200, 'a host may want it so')
  t.equal(came().length, 1)
})

t.test('what a group names and no plugin has goes nowhere, through a mount of the host\'s neither', async (t) => {
  const { upstream, came } = await startProvider(t)
  const { url } = await startApp(t, async (app) => {
    await app.register(auth, {
      groups: { all: { protocols: everyProtocol, upstream: 'nowhere' } }, keys: [{ id: 'caller', group: 'all', secret }],
    })
    await app.register(paths)
    await mount(app, upstream.url, { ...proxyOptions(), prefix: '/v1', rewritePrefix: '/v1' })
  })
  t.equal((await askOnce(url, ['POST /v1/chat/completions HTTP/1.1', 'host: h', json, bearer], chat)).status, 500)
  t.strictSame(came(), [])
})

t.test('a model request is sent by no hook or error handler that comes before the guard is done with it', async (t) => {
  const fail = async (): Promise<never> => { throw new Error('from a hook') }
  const hooks: Record<string, object> = {
    onRequest: { onRequest: (_request: FastifyRequest, reply: FastifyReply) => { reply.from() } },
    preValidation: { preValidation: (_request: FastifyRequest, reply: FastifyReply) => { reply.from() } },
    'an error handler': {
      onRequest: fail, errorHandler: (_error: Error, _request: FastifyRequest, reply: FastifyReply) => { reply.from() },
    },
  }
  const passing = { preHandler: (_request: FastifyRequest, reply: FastifyReply) => { reply.from() } }
  const headers = { authorization: `Bearer ${secret}`, 'x-api-key': secret }
  const { upstream, came } = await startProvider(t)
  for (const [name, options] of Object.entries({ ...hooks, preHandler: passing })) {
    const { app } = await startApp(t, async (app) => {
      await app.register(replyFrom, { base: upstream.url })
      await app.register(llmGateway, guarded)
      app.all('/v1/*', options, async () => '')
    })
    const { statusCode } = await app.inject({ url: '/v1/models', headers })
    t.equal(statusCode, name === 'preHandler' ? 200 : 500, name)
  }
  t.equal(came().length, 1)
  t.notMatch(came().join(), secret)
})
