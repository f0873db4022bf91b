import { once } from 'node:events'
import { connect, constants } from 'node:http2'
import { setTimeout as pause } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import Fastify, { type FastifyInstance } from 'fastify'
import t from 'tap'
import llmGateway from '../../../plugins/index.js'
import { gatewayOptions, listen, secret } from '../../helpers/gateway.js'

t.test('over HTTP/2 nothing is kept of a refusal whose caller had left before', { timeout: 60_000 }, async (t) => {
  setFlagsFromString('--expose-gc')
  const collect: () => void = runInNewContext('gc')
  const app: FastifyInstance = Object(Fastify({ http2: true }))
  await app.register(llmGateway, gatewayOptions('http://127.0.0.1:9', { log: false }))
  const refused: Array<WeakRef<object>> = []
  app.addHook('preHandler', async (_request, { raw }) => {
    refused.push(new WeakRef(raw))
    await once(raw, 'close')
    throw Object.assign(new Error('the host refuses'), { statusCode: 401 })
  })
  const client = connect(await listen(app))
  t.teardown(async () => {
    client.destroy()
    await app.close()
  })
  const stream = client.request({
    ':method': 'POST', ':path': '/v1/chat/completions', authorization: `Bearer ${secret}`, 'content-type': 'application/json',
  })
  stream.end(JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x' }] }))
  while (refused.length === 0) await pause(5)
  stream.close(constants.NGHTTP2_CANCEL)
  const isKept = (): boolean => refused.some((raw) => raw.deref() !== undefined)
  for (let looks = 0; looks < 1_000 && isKept(); looks += 1) {
    await pause(20)
    collect()
  }
  t.notOk(isKept(), 'its reply is let go of')
})
