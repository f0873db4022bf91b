/** Replies that wait for each other on one connection (RFC 9112 9.3.2). */
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { listen, secret, startGateway } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'

const body = '{"model":"m","messages":[{"role":"user","content":"hi"}]}'
const head = [
  'POST /v1/chat/completions HTTP/1.1', 'host: gateway.example', 'content-type: application/json', `authorization: Bearer ${secret}`,
  `content-length: ${body.length}`,
].join('\r\n')
const headers = { 'content-type': 'application/json' }

t.test('a reply that its caller holds back goes on when one behind it has come', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url, { forward: { idleTimeoutMs: 10_000 } })
  const { hostname, port } = new URL(await listen(app))
  // More than the buffers of two loopback connections and of everything between them hold.
  upstream.queue({ headers, body: `{"filler":"${'x'.repeat(40_000_000)}","first":1}` })
  upstream.queue({ headers, body: '{"filler":"x","second":2}', split: [10], before: async () => await sleep(50) })
  const socket = connect(Number(port), hostname)
  t.teardown(() => socket.destroy())
  socket.pause()
  socket.write(`${head}\r\n\r\n${body}`)
  const { raw: { res } } = await upstream.requests.next()
  for (let before = -1; res.writableLength === 0 || res.writableLength !== before; before = res.writableLength) {
    await sleep(100)
  }
  socket.write(`${head}\r\nconnection: close\r\n\r\n${body}`)
  await (await upstream.requests.next()).aborted
  let tail = ''
  let ends = 0
  socket.on('data', (bytes: Buffer) => {
    const seen = tail + bytes.toString('latin1')
    ends += seen.match(/"(?:first":1|second":2)\}/g)?.length ?? 0
    tail = seen.slice(-9)
  })
  socket.resume()
  for (const { outcome } of [await settled.next(), await settled.next()]) t.equal(outcome, 'ok')
  await new Promise((resolve) => socket.on('close', resolve))
  t.equal(ends, 2, 'both are whole')
})
