import t from 'tap'
import { listen, secret } from '../helpers/gateway.js'
import { startHost } from '../helpers/host.js'
import { startUpstream } from '../helpers/upstream.js'
import { askOnce, Wire } from '../helpers/wire.js'
import { build } from './seen-host.js'

t.test('a WebSocket upgrade is answered 426 at once and the connection goes on', async (t) => {
  const { app, seen } = await build(t)
  const url = await listen(app)
  const wire = new Wire(url)
  t.teardown(() => wire.destroy())
  const upgrade = [
    'host: h', 'connection: keep-alive, Upgrade', 'upgrade: websocket', 'sec-websocket-version: 13',
    'sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==',
  ]
  for (const path of ['/v1/responses', '/responses', '/v1/v1/responses', '/v1/responses/resp_1']) {
    const reply = await wire.ask([`GET ${path} HTTP/1.1`, ...upgrade])
    t.match([reply.status, reply.headers.upgrade, JSON.parse(reply.body)], [426, 'HTTP/1.1', { error: { code: 'upgrade_required' } }], path)
  }
  t.equal(seen.length, 0)
  const offered = await wire.ask(
    [
      'POST /v1/responses HTTP/1.1', 'host: h', 'connection: Upgrade, HTTP2-Settings', 'upgrade: h2c', 'http2-settings: AA',
      'content-type: application/json',
    ],
    '{}'
  )
  t.equal(offered.status, 200, 'an offer of h2c is ignored')
  const host = await wire.ask(['GET /v1/ws HTTP/1.1', ...upgrade])
  t.equal(host.status, 200, 'a path that is the host\'s')
  t.equal((await askOnce(url, ['GET /v1beta HTTP/1.1', ...upgrade])).status, 426, 'a path that is nobody\'s')
  t.equal(
    (await wire.ask(['GET /v1/responses/resp_1 HTTP/1.1', 'host: h', 'upgrade: websocket'])).status, 200, 'no upgrade without Connection'
  )
})

t.test('an upgrade on a mount that serves WebSockets does not get past the guard', async (t) => {
  const upstream = await startUpstream(t)
  const app = await startHost(t, upstream.url, { mounts: [] })
  const { default: httpProxy } = await import('@fastify/http-proxy')
  await app.register(httpProxy, { upstream: upstream.url, prefix: '/v1', rewritePrefix: '/v1', websocket: true })
  const url = await listen(app)
  let upgraded = 0
  upstream.server.on('upgrade', (_, socket) => { upgraded += 1; socket.destroy() })
  const upgrade = [
    'host: h', 'connection: Upgrade', 'upgrade: websocket', 'sec-websocket-version: 13', 'sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==',
  ]
  for (const path of ['/v1/responses', '/v1/realtime']) {
    t.equal((await askOnce(url, [`GET ${path} HTTP/1.1`, ...upgrade])).status, 401)
    t.equal((await askOnce(url, [`GET ${path} HTTP/1.1`, ...upgrade, `authorization: Bearer ${secret}`])).status, 426)
  }
  t.equal(upgraded, 0)
})
