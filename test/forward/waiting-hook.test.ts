import { setTimeout as wait } from 'node:timers/promises'
import Fastify from 'fastify'
import t from 'tap'
import llmGateway from '../../plugins/index.js'
import { call, gatewayOptions, listen, read, secret } from '../helpers/gateway.js'
import { startHost } from '../helpers/host.js'
import { sha256, startUpstream } from '../helpers/upstream.js'

const headers = { authorization: `Bearer ${secret}` }

// More than what is held before somebody reads: the upstream waits then, and goes on while the first of it is read.
const numbers = Array.from({ length: 300_000 }, (_, i) => i)
const replies = {
  'application/json': Buffer.from(`{"id":"${numbers.join(' ')}","usage":{"prompt_tokens":1,"completion_tokens":1}}`),
  'text/event-stream': Buffer.from(numbers.map((i) => `data: {"id":${i}}\n\n`).join('') + 'data: [DONE]\n\n'),
}

t.test('a long reply keeps its order where a hook of the host\'s waits before it is sent', async (t) => {
  const upstream = await startUpstream(t)
  const own = Fastify()
  t.teardown(() => own.close())
  await own.register(llmGateway, gatewayOptions(upstream.url))
  for (const [where, app] of Object.entries({ own, adapted: await startHost(t, upstream.url, { adapted: true }) })) {
    app.addHook('onSend', async (_request, _reply, payload) => {
      await wait(20)
      return payload
    })
    const url = await listen(app)
    for (const [type, bytes] of Object.entries(replies)) {
      upstream.queue({ headers: { 'content-type': type }, body: bytes })
      const body = JSON.stringify({ model: 'm', stream: type !== 'application/json', messages: [{ role: 'user', content: 'hi' }] })
      const reply = await read(await call(`${url}/v1/chat/completions`, { headers, body }).reply)
      t.equal(sha256(reply.bytes), sha256(bytes), `${where}, ${type}`)
    }
  }
})
