import { once } from 'node:events'
import { connect, constants } from 'node:http2'
import { setTimeout as pause } from 'node:timers/promises'
import Fastify, { type FastifyInstance } from 'fastify'
import t from 'tap'
import llmGateway from '../../../plugins/index.js'
import { everyProtocol, gatewayOptions, listen, secret } from '../../helpers/gateway.js'

t.test('over HTTP/2 a long list of models is not cut while its caller reads it slowly', { timeout: 240_000 }, async (t) => {
  const app: FastifyInstance = Object(Fastify({ http2: true }))
  const models = Array.from({ length: 4_000 }, (_, at) => `a-model-with-the-number-${at}`)
  await app.register(llmGateway, gatewayOptions('http://127.0.0.1:9', { log: false, groups: { all: { protocols: everyProtocol, models } } }))
  const client = connect(await listen(app), { settings: { initialWindowSize: 16_384 } })
  t.teardown(async () => {
    client.destroy()
    await app.close()
  })
  const reply = client.request({ ':path': '/v1/models', authorization: `Bearer ${secret}` })
  const [{ 'content-length': length }] = await once(reply, 'response')
  let text = ''
  const closed = once(reply, 'close')
  // All of it takes longer than an untaken refusal is held.
  for await (const chunk of reply.setEncoding('utf8')) {
    text += String(chunk)
    if (text.length < Number(length) - 100_000) await pause(900)
  }
  await closed
  t.equal(text.length, Number(length))
  t.equal(reply.rstCode, constants.NGHTTP2_NO_ERROR)
})
