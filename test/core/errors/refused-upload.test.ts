import Fastify from 'fastify'
import t from 'tap'
import llmGateway from '../../../plugins/index.js'
import { gatewayOptions, listen } from '../../helpers/gateway.js'
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
