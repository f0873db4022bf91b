/** What a host's own listener for upgrades does not take of the model paths is answered by the door: nobody waits for ever. */
import { ServerResponse, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import httpProxy from '@fastify/http-proxy'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import llmGateway, { proxyOptions, type LlmGatewayOptions } from '../../../plugins/index.js'
import { everyProtocol, gatewayOptions, listen, secret } from '../../helpers/gateway.js'
import { listenAtTwo } from '../../helpers/two-addresses.js'
import { startUpstream, type Upstream } from '../../helpers/upstream.js'
import { Wire, type RawReply } from '../../helpers/wire.js'

const chat = '{"model":"m","messages":[{"role":"user","content":"hi"}]}'
const bearer = `authorization: Bearer ${secret}`
const webSocket = ['host: h', 'connection: Upgrade', 'upgrade: websocket']
const json = 'content-type: application/json'
const offer = ['host: h', 'connection: Upgrade, HTTP2-Settings', 'upgrade: h2c', 'http2-settings: AAMAAABkAAQAAP__', json]
const guarded: LlmGatewayOptions = {
  groups: { all: { protocols: everyProtocol } }, keys: [{ id: 'caller', group: 'all', secret }], routes: false,
}

type Build = (app: FastifyInstance, upstream: string) => Promise<void>
type Listener = (raw: IncomingMessage, socket: Socket, head: Buffer) => void

const ownRoutes: Build = async (app, upstream) => { await app.register(llmGateway, gatewayOptions(upstream)) }

async function start (t: Test, build: Build = ownRoutes): Promise<{ app: FastifyInstance, url: string, upstream: Upstream }> {
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(() => app.close())
  await build(app, upstream.url)
  return { app, url: await listen(app), upstream }
}

/** On a machine that is busy with other tests. */
const soonMs = 30_000
/** Longer than an upgrade waits to be taken. */
const neverMs = 4_000

async function ask (
  t: Test, url: string, line: string, headers: readonly string[], body = '', withinMs = soonMs
): Promise<RawReply | string> {
  const wire = new Wire(url)
  t.teardown(() => wire.destroy())
  const reply = wire.ask([`${line} HTTP/1.1`, ...headers], body).catch(() => 'closed')
  return await Promise.race([reply, wait(withinMs, 'no reply', { ref: false })])
}

async function statusOf (...asked: Parameters<typeof ask>): Promise<number | string> {
  const reply = await ask(...asked)
  return typeof reply === 'string' ? reply : reply.status
}

const ignore: Listener = () => {}

function mounts (more: () => object): Build {
  return async (app, upstream) => {
    await app.register(llmGateway, guarded)
    for (const prefix of ['/v1', '/v1beta']) {
      const options: { upstream: string } = Object.assign({ upstream, prefix, rewritePrefix: prefix }, more())
      await app.register(httpProxy, options)
    }
  }
}

const places: Record<string, Build> = {
  'routes of our own': ownRoutes,
  'adapted mounts': mounts(proxyOptions),
  'mounts of the host': mounts(() => ({})),
}

for (const [name, build] of Object.entries(places)) {
  t.test(`${name}: an upgrade that the host's listener ignores is answered`, async (t) => {
    const moments: ReadonlyArray<(app: FastifyInstance) => void> = [
      (app) => { app.server.on('upgrade', ignore) },
      (app) => { app.addHook('onReady', async () => { app.server.on('upgrade', ignore) }) },
      (app) => { app.addHook('onListen', async () => { app.server.on('upgrade', ignore) }) },
    ]
    await Promise.all(moments.map(async (moment) => {
      const { url, upstream } = await start(t, async (app, upstream) => { await build(app, upstream); moment(app) })
      const large = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x'.repeat(500_000) }] })
      t.strictSame(await Promise.all([
        ...['/v1/realtime', '/v1/chat/completions', '/v1/v1/anything', '/v1/models', '/ws/google.ai/x'].flatMap((path) => [
          statusOf(t, url, `GET ${path}`, webSocket), statusOf(t, url, `GET ${path}`, [...webSocket, bearer]),
        ]),
        statusOf(t, url, 'POST /v1/chat/completions', offer, chat),
        statusOf(t, url, 'POST /v1/nothing', [...offer, bearer], chat),
      ]), [...Array(5).fill([401, 426]).flat(), 401, 404])
      t.equal(upstream.seen.length, 0)
      t.strictSame(await Promise.all([chat, large].map((body) => (
        statusOf(t, url, 'POST /v1/chat/completions', [...offer, bearer], body)
      ))), [200, 200], 'an offer is ignored')
      t.strictSame(upstream.seen.map(({ body }) => body.length).toSorted((a, b) => a - b), [chat.length, large.length])
    }))
  })
}

t.test('a connection whose offers are ignored goes on, and one that was answered ends', async (t) => {
  const { app, url } = await start(t)
  app.server.on('upgrade', ignore)
  const sockets = new Set<Socket>()
  app.server.on('connection', (socket: Socket) => sockets.add(socket))
  const wire = new Wire(url)
  t.teardown(() => wire.destroy())
  for (let turn = 0; turn < 2; turn += 1) {
    t.equal((await wire.ask(['POST /v1/chat/completions HTTP/1.1', ...offer, bearer], chat)).status, 200)
  }
  t.equal((await wire.ask(['GET /v1/models HTTP/1.1', 'host: h', bearer])).status, 200)
  // Where Node asks which offers to take, there is no other than its own.
  t.match([...sockets].map((socket) => socket.listenerCount('error')).join(), /^[12]$/)
  const reply = await wire.ask(['GET /v1/realtime HTTP/1.1', ...webSocket])
  t.match([reply.status, reply.headers['connection']], [401, 'close'])
  await wire.closed()
})

t.test('an upgrade of a path that cannot be decoded is not told what its caller wrote', async (t) => {
  const withSockets = mounts(() => ({ ...proxyOptions(), websocket: true }))
  const ignored: Build = async (app, upstream) => { await ownRoutes(app, upstream); app.server.on('upgrade', ignore) }
  await Promise.all([withSockets, ignored].map(async (build) => {
    const { url, upstream } = await start(t, build)
    for (const [head, status] of [[webSocket, 401], [offer, 400]] as const) {
      const reply = await ask(t, url, 'GET /v1/models%ZZ?key=secret-of-a-caller', head)
      t.match(reply, { status, body: /^(?!.*secret-of-a-caller).*"domain":"llm-gateway"/s })
    }
    t.equal(upstream.seen.length, 0)
  }))
})

t.test('what the host\'s listener takes is left to it, however late within its time', async (t) => {
  const { app, url } = await start(t)
  const ways: Record<string, (socket: Socket) => void> = {
    hello: (socket) => { socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\n') },
    read: (socket) => {
      socket.on('error', () => {})
      socket.on('data', () => {})
      setTimeout(() => socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\n'), 2_500)
    },
    readable: (socket) => {
      socket.on('readable', () => {})
      setTimeout(() => socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\n'), 2_500)
    },
    end: (socket) => { socket.end('HTTP/1.1 503 Unavailable\r\n\r\n') },
    destroy: (socket) => { socket.destroy() },
  }
  const taken: Socket[] = []
  app.server.on('upgrade', (raw: IncomingMessage, socket: Socket) => {
    taken.push(socket)
    const url = new URL(String(raw.url), 'http://h')
    setTimeout(() => ways[String(url.searchParams.get('way'))]?.(socket), Number(url.searchParams.get('ms')))
  })
  const asked = Object.keys(ways).flatMap((way) => [0, 1_000].map((ms) => (
    statusOf(t, url, `GET /v1/realtime?way=${way}&ms=${ms}`, webSocket)
  )))
  t.strictSame(await Promise.all(asked), [101, 101, 101, 101, 101, 101, 503, 503, 'closed', 'closed'])
  await wait(2_100)
  const ours = taken.map((socket) => socket.listeners('error').filter(({ name }) => name === 'ignoreError').length)
  t.strictSame(ours, ours.map(() => 0))
  for (const socket of taken) socket.destroy()
})

t.test('paths of the host\'s are left to it, whether it answers or not', async (t) => {
  const { app, url } = await start(t, async (app, upstream) => {
    await ownRoutes(app, upstream)
    app.get('/own', async () => 'own')
    app.get('/v1/own', async () => 'own')
  })
  const ignored: Socket[] = []
  app.server.on('upgrade', (_raw: IncomingMessage, socket: Socket) => { ignored.push(socket) })
  const asked = ['/own', '/other', '/v1/own'].map((path) => statusOf(t, url, `GET ${path}`, webSocket, '', neverMs))
  t.strictSame(await Promise.all(asked), Array(3).fill('no reply'))
  for (const socket of ignored) socket.destroy()
})

t.test('where nobody but a mount listens, it serves what it did', async (t) => {
  const met: string[] = []
  const { url } = await start(t, async (app, upstream) => {
    app.addHook('onRequest', async ({ raw, headers }) => {
      met.push(String(raw.url))
      if (headers['x-slow'] !== undefined) await wait(2_500)
    })
    await ownRoutes(app, upstream)
    await app.register(httpProxy, { upstream, prefix: '/ws', websocket: true })
    app.get('/own', async () => 'own')
  })
  t.strictSame(await Promise.all([
    statusOf(t, url, 'GET /own', webSocket), statusOf(t, url, 'GET /v1/realtime', webSocket),
    statusOf(t, url, 'GET /v1/realtime', [...webSocket, 'x-slow: 1']),
  ]), [200, 401, 401])
  await wait(2_100)
  t.equal(met.length, 3, 'each was routed once')
})

t.test('beside a listener of the host\'s and a mount that serves sockets', async (t) => {
  const { app, url } = await start(t, async (app, upstream) => {
    await ownRoutes(app, upstream)
    await app.register(httpProxy, { upstream, prefix: '/ws', websocket: true })
  })
  app.server.on('upgrade', ignore)
  t.strictSame(await Promise.all([
    statusOf(t, url, 'GET /v1/realtime', webSocket), statusOf(t, url, 'POST /v1/chat/completions', [...offer, bearer], chat),
  ]), [401, 200])
})

t.test('an app of two gateways answers once', async (t) => {
  const { app, url } = await start(t, async (app, upstream) => {
    for (const prefix of ['/a', '/b']) {
      await app.register(async (scope) => { await scope.register(llmGateway, gatewayOptions(upstream)) }, { prefix })
    }
  })
  app.server.on('upgrade', ignore)
  t.strictSame(await Promise.all(['/a', '/b'].map((prefix) => statusOf(t, url, `GET ${prefix}/v1/models`, webSocket))), [401, 401])
})

t.test('an upgrade behind an unfinished reply ends its connection, and one behind a finished reply is answered', async (t) => {
  const { app, url, upstream } = await start(t)
  app.server.on('upgrade', ignore)
  upstream.queue({ stallAt: 'headers' })
  const request = ['POST /v1/chat/completions HTTP/1.1', 'host: h', bearer, json, `content-length: ${chat.length}`]
  const upgrade = ['GET /v1/realtime HTTP/1.1', ...webSocket, '', ''].join('\r\n')
  const behind = new Wire(url)
  behind.send(`${[...request, '', chat].join('\r\n')}${upgrade}`)
  await Promise.race([behind.closed(), wait(4_000, null, { ref: false })])
  t.ok(behind.socket.destroyed)
  behind.destroy()
  const after = new Wire(url)
  t.teardown(() => after.destroy())
  after.send(`${[...request, '', chat].join('\r\n')}${upgrade}`)
  t.equal((await after.reply()).status, 200)
  t.equal(await Promise.race([after.reply().then(({ status }) => status), wait(soonMs, 'no reply', { ref: false })]), 401)
})

t.test('a caller that resets its connection meanwhile does no harm', async (t) => {
  const { app, url } = await start(t)
  const sockets: Socket[] = []
  app.server.on('upgrade', (_raw: IncomingMessage, socket: Socket) => { sockets.push(socket) })
  for (let turn = 0; turn < 5; turn += 1) {
    const wire = new Wire(url)
    wire.send(['GET /v1/realtime HTTP/1.1', ...webSocket, '', ''].join('\r\n'))
    while (sockets.length <= turn) await wait(1)
    wire.socket.resetAndDestroy()
  }
  await wait(2_100)
  t.strictSame(sockets.map(({ destroyed }) => destroyed), Array(5).fill(true))
})

t.test('nor does one that resets it while its key is looked up for a mount with sockets', async (t) => {
  for (const options of [{}, proxyOptions()]) {
    const asked: Array<(key: null) => void> = []
    const sockets: Socket[] = []
    const { app, url } = await start(t, async (app, upstream) => {
      const lookup = async (): Promise<null> => await new Promise((resolve) => { asked.push(resolve) })
      await app.register(llmGateway, { groups: { all: { protocols: everyProtocol } }, lookup, routes: false })
      await app.register(httpProxy, { ...options, upstream, prefix: '/v1', rewritePrefix: '/v1', websocket: true })
    })
    app.server.on('connection', (socket: Socket) => { sockets.push(socket) })
    const wire = new Wire(url)
    wire.send(['GET /v1/realtime HTTP/1.1', ...webSocket, bearer, '', ''].join('\r\n'))
    while (asked.length === 0) await wait(1)
    wire.socket.resetAndDestroy()
    while (sockets[0]?.destroyed !== true) await wait(1)
    asked.forEach((answer) => answer(null))
    t.equal(await statusOf(t, url, 'GET /v1/realtime', webSocket), 401)
  }
})

t.test('an app that closes does not wait for them', async (t) => {
  const { app, url } = await start(t)
  const came: Socket[] = []
  app.server.on('upgrade', (_raw: IncomingMessage, socket: Socket) => { came.push(socket) })
  const asked = statusOf(t, url, 'GET /v1/realtime', webSocket)
  while (came.length === 0) await wait(1)
  await app.close()
  t.equal(await asked, 'closed', 'and not answered, as after a while')
})

t.test('upgrades on a further address of the server, where nobody listens, are answered at once', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(() => app.close())
  await ownRoutes(app, upstream.url)
  const addresses = await listenAtTwo(t, app)
  t.equal(addresses.length, 2)
  const begun = performance.now()
  for (const { address, port } of addresses) {
    const url = `http://${address}:${port}`
    t.equal(await statusOf(t, url, 'GET /v1/realtime', webSocket), 401)
    t.equal(await statusOf(t, url, 'POST /v1/chat/completions', [...offer, bearer], chat), 200)
  }
  t.ok(performance.now() - begun < 1_500)
})

t.test('a listener that routes by itself is let', async (t) => {
  let met = 0
  const { app, url } = await start(t, async (app, upstream) => {
    app.addHook('onRequest', async () => { met += 1; await wait(2_300) })
    await ownRoutes(app, upstream)
  })
  app.server.on('upgrade', (raw: IncomingMessage, socket: Socket) => {
    const reply = new ServerResponse(raw)
    reply.assignSocket(socket)
    reply.once('finish', () => socket.destroy())
    app.routing(raw, reply)
  })
  t.equal(await statusOf(t, url, 'GET /v1/realtime', webSocket), 401)
  t.equal(met, 1)
})

t.test('two gateways in one app read an offer once, whichever of them ignores it', async (t) => {
  const { app, url, upstream } = await start(t, async (app, upstream) => {
    for (const prefix of ['/v1', '/v1beta']) {
      await app.register(async (scope) => {
        await scope.register(llmGateway, { ...guarded, metrics: { path: false } })
        await scope.register(httpProxy, { ...proxyOptions(), upstream, prefix, rewritePrefix: prefix })
      })
    }
  })
  app.server.on('upgrade', ignore)
  t.equal(await statusOf(t, url, 'POST /v1/chat/completions', [...offer, bearer], chat), 200)
  await wait(200)
  t.equal(upstream.seen.length, 1)
})

t.test('a preflight that offers an upgrade is answered', async (t) => {
  const { app, url, upstream } = await start(t)
  app.server.on('upgrade', ignore)
  const preflight = ['origin: https://a.example', 'access-control-request-method: POST']
  t.strictSame(await Promise.all([webSocket, offer].map((headers) => (
    statusOf(t, url, 'OPTIONS /v1/chat/completions', [...headers, ...preflight])
  ))), [204, 204])
  t.equal(upstream.seen.length, 0)
})
