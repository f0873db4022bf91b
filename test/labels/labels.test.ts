/** What callers say of their requests in a header, as its bytes arrive. */
import Fastify from 'fastify'
import t from 'tap'
import { labels, log } from '../../plugins/index.js'
import type { LabelsOptions } from '../../plugins/labels/index.js'
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
  for (const team of ['日本', 'Ł']) {
    await app.inject({ url: '/v1/responses/r1', headers: { 'x-llm-labels': `team=${team}` } })
    t.strictSame((await settled.next()).callerLabels, { team }, 'of a header that never was bytes')
  }
})

t.test('only model requests lose the header, and only those that have it have labels of their caller', async (t) => {
  const app = Fastify()
  t.teardown(async () => await app.close())
  await app.register(labels, { header: 'x-team' })
  app.get('/v1/responses/:id', async ({ headers }) => headers)
  app.get('/host', async ({ headers }) => headers)
  const settled = watchSettled(app)
  t.notMatch((await app.inject({ url: '/v1/responses/r1', headers: { 'x-team': 'team=a' } })).json(), { 'x-team': String })
  t.strictSame((await settled.next()).callerLabels, { team: 'a' })
  await app.inject('/v1/responses/r1')
  t.equal((await settled.next()).callerLabels, null)
  t.match((await app.inject({ url: '/host', headers: { 'x-team': 'team=a' } })).json(), { 'x-team': 'team=a' })
})

t.test('without the name of a header none is read, and a wrong one is an error that names the option', async (t) => {
  const app = Fastify()
  t.teardown(async () => await app.close())
  await app.register(labels).register(log)
  app.get('/v1/responses/:id', async () => 'ok')
  const settled = watchSettled(app)
  await app.inject({ url: '/v1/responses/r1', headers: { undefined: 'team=a' } })
  t.equal((await settled.next()).callerLabels, null)
  for (const header of ['two words', '', 'x-api-key', 'Authorization', 'Content-Type', 'host', 'anthropic-version', 'x-forwarded-for', 3]) {
    await t.rejects(async () => await Fastify().register(labels, { header } as LabelsOptions), {
      code: 'LLM_GATEWAY_OPTION', message: /labels\.header/,
    }, String(header))
  }
})
