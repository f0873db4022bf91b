/** What callers say of their requests in a header, as its bytes arrive. */
import Fastify from 'fastify'
import t from 'tap'
import { labels } from '../../plugins/index.js'
import { listen, watchSettled } from '../helpers/gateway.js'
import { Wire } from '../helpers/wire.js'

t.test('labels have the letters that a caller wrote, in whichever way they were sent', async (t) => {
  const app = Fastify()
  t.teardown(async () => await app.close())
  await app.register(labels, { header: 'X-LLM-Labels' })
  app.get('/v1/responses/:id', async () => 'ok')
  const settled = watchSettled(app)
  const url = await listen(app)
  const wire = new Wire(url)
  t.teardown(() => wire.destroy())
  for (const encoding of ['utf8', 'latin1'] as const) {
    wire.send(Buffer.from('GET /v1/responses/r1 HTTP/1.1\r\nhost: h\r\nx-llm-labels: team=Größe,app=shop\r\n\r\n', encoding))
    t.equal((await wire.reply()).status, 200)
    t.strictSame((await settled.next()).callerLabels, { team: 'Größe', app: 'shop' }, encoding)
  }
  await app.inject({ url: '/v1/responses/r1', headers: { 'x-llm-labels': 'team=日本' } })
  t.strictSame((await settled.next()).callerLabels, { team: '日本' }, 'of a header that never was bytes')
})
