import Fastify from 'fastify'
import t from 'tap'
import llmGateway from '../../../plugins/index.js'
import { gatewayOptions, listen, secret } from '../../helpers/gateway.js'
import { Wire } from '../../helpers/wire.js'

t.test('a refused caller that goes on sending its body is cut', { timeout: 120_000 }, async (t) => {
  // Nobody is asked for anything upstream: the address leads nowhere.
  const app = Fastify({ forceCloseConnections: true })
  await app.register(llmGateway, gatewayOptions('http://127.0.0.1:9', { log: false }))
  t.teardown(() => app.close())
  const wire = new Wire(await listen(app))
  t.teardown(() => wire.destroy())
  const refused = wire.ask([
    'POST /v1/chat/completions HTTP/1.1', 'host: a', 'authorization: Bearer sk-wrong-0123456789', 'content-type: application/json',
    'transfer-encoding: chunked',
  ])
  const dribble = setInterval(() => wire.send('1\r\n.\r\n'), 100)
  t.teardown(() => clearInterval(dribble))
  t.equal((await refused).status, 401)
  // Else until this test's own limit.
  await wire.closed()
  t.pass('its connection is closed')
})

// Closed while bytes are on their way, a connection is reset: a caller that reads only once it wrote never sees why.
const tooLarge: ReadonlyArray<[name: string, head: string, body: string]> = [
  ['declares its length', 'content-length: 200000', '.'.repeat(200_000)],
  ['comes in chunks', 'transfer-encoding: chunked', `${`186a0\r\n${'.'.repeat(100_000)}\r\n`.repeat(2)}0\r\n\r\n`],
]
for (const [name, head, body] of tooLarge) {
  t.test(`the connection of an upload above the cap that ${name} is read to its end and kept`, async (t) => {
    const app = Fastify({ forceCloseConnections: true })
    await app.register(llmGateway, gatewayOptions('http://127.0.0.1:9', { log: false, validation: { maxBodyBytes: 150_000 } }))
    t.teardown(() => app.close())
    const wire = new Wire(await listen(app))
    t.teardown(() => wire.destroy())
    wire.send([
      'POST /v1/chat/completions HTTP/1.1', 'host: a', `authorization: Bearer ${secret}`, 'content-type: application/json', head, '', '',
    ].join('\r\n'))
    wire.send(body)
    t.equal((await wire.reply()).status, 413)
    t.equal((await wire.ask(['GET /v1/nothing HTTP/1.1', 'host: a'])).status, 404, 'and serves the next request')
  })
}
