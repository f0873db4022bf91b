/** nginx asks the servers behind it in HTTP/1.0 unless told otherwise. A whole reply may end with its connection there. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import Fastify from 'fastify'
import t from 'tap'
import llmGateway from '../../plugins/index.js'
import { gatewayOptions, listen, secret } from '../helpers/gateway.js'
import { startUpstream, type Script } from '../helpers/upstream.js'
import { hosts } from './hosts.js'

function ask (socket: Socket, stream: boolean): void {
  const body = JSON.stringify({ model: 'm', stream, stream_options: { include_usage: true }, messages: [{ role: 'user', content: 'x' }] })
  socket.write([
    'POST /v1/chat/completions HTTP/1.0', 'host: gateway', `authorization: Bearer ${secret}`, 'content-type: application/json',
    `content-length: ${body.length}`, '', body,
  ].join('\r\n'))
}

/** How the connection ended, behind what came of the reply. */
async function ending (socket: Socket): Promise<{ text: string, code: string }> {
  const seen = { text: '', code: 'a clean end' }
  socket.on('data', (bytes) => { seen.text += String(bytes) })
  socket.on('error', (error) => { seen.code = String(Reflect.get(error, 'code')) })
  await new Promise((resolve) => socket.once('close', resolve))
  return seen
}

const whole = { fixture: 'chat_completions.include_usage.sse', split: 'events' } as const
const cut: Record<string, Script> = {
  'a stream that is cut within an event': { ...whole, split: [100], cutAt: 400 },
  'a long reply that is cut': { fixture: 'chat_completions.json', split: [100], cutAt: 200 },
}

for (const host of hosts) {
  t.test(`on ${host.name} a reply that broke off is reset under HTTP/1.0, and no other`, async (t) => {
    const upstream = await startUpstream(t)
    const { app, settled } = await host.start(t, upstream.url)
    const { port } = new URL(await listen(app))
    for (const [name, script] of Object.entries({ whole, ...cut })) {
      let go = (): void => {}
      const passed = new Promise<void>((resolve) => { go = resolve })
      // Not before its caller has what came: a reset takes along what is still on its way.
      upstream.queue({ ...script, before: async (write) => { if (write > 1 && script !== whole) await passed } })
      const socket = connect(Number(port), '127.0.0.1')
      const ended = ending(socket)
      socket.once('data', () => setTimeout(go, 20))
      ask(socket, script !== cut['a long reply that is cut'])
      const { text, code } = await ended
      t.match(text, /^HTTP\/1\.1 200 OK\r\n/, name)
      t.equal(code, script === whole ? 'a clean end' : 'ECONNRESET', name)
      t.equal((await settled.next()).outcome, script === whole ? 'ok' : 'truncated', name)
    }
  })
}

t.test('over TLS its connection is cut without its own farewell', async (t) => {
  const folder = t.testdir({})
  execFileSync('openssl', [
    'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', 'key.pem', '-out', 'cert.pem',
    '-days', '2', '-subj', '/CN=localhost',
  ], { cwd: folder, stdio: 'ignore' })
  const [key, cert] = ['key.pem', 'cert.pem'].map((name) => readFileSync(join(folder, name)))
  const upstream = await startUpstream(t)
  const app = Fastify({ https: { key, cert } })
  t.teardown(() => app.close())
  await app.register(llmGateway, gatewayOptions(upstream.url))
  const { port } = new URL(await listen(app))
  let go = (): void => {}
  const passed = new Promise<void>((resolve) => { go = resolve })
  upstream.queue({ ...cut['a stream that is cut within an event'], before: async (write) => { if (write > 1) await passed } })
  const socket = connectTls({ port: Number(port), host: '127.0.0.1', rejectUnauthorized: false })
  const ended = ending(socket)
  socket.once('data', go)
  ask(socket, true)
  t.match((await ended).text, /^HTTP\/1\.1 200 OK\r\n/)
  t.equal((await app.inject('/v1/models')).statusCode, 401, 'the server goes on')
})
