import httpProxy from '@fastify/http-proxy'
import Fastify from 'fastify'
import t from 'tap'
import llmGateway, { usage } from '../../../plugins/index.js'
import { memoryBalances } from '../../../plugins/state/index.js'
import { call, everyProtocol, gatewayOptions, listen, read, secret, watchSettled } from '../../helpers/gateway.js'
import { startUpstream } from '../../helpers/upstream.js'
import { askOnce } from '../../helpers/wire.js'

t.test('a plain mount sends nothing for a caller that left while a hook of the host waited', async (t) => {
  const upstream = await startUpstream(t)
  const balances = memoryBalances()
  const logged: string[] = []
  const app = Fastify({ logger: { level: 'error', stream: { write: (line: string) => { logged.push(line) } } } })
  t.teardown(() => app.close())
  await app.register(llmGateway, {
    ...gatewayOptions(upstream.url, { routes: false, limits: { balances } }),
    groups: { all: { protocols: everyProtocol, limits: { concurrency: 1 } } },
  })
  let goOn = (): void => {}
  const isWaiting = new Promise<void>((resolve) => {
    app.addHook('preHandler', async ({ headers }) => {
      if (headers['x-audited'] !== undefined) return
      resolve()
      await new Promise<void>((resolve) => { goOn = resolve })
    })
  })
  await app.register(httpProxy, { upstream: upstream.url, prefix: '/v1', rewritePrefix: '/v1' })
  const settled = watchSettled(app)
  const url = `${await listen(app)}/v1/chat/completions`
  const { request } = call(url, { body: '{"model":"gone","messages":[{"role":"user","content":"x"}]}' })
  await isWaiting
  request.destroy()
  t.match(await settled.next(), { outcome: 'client_abort' })
  goOn()
  const next = call(url, { body: '{"model":"next","messages":[{"role":"user","content":"x"}]}', headers: { 'x-audited': 'yes' } })
  await read(await next.reply)
  t.match(await settled.next(), { outcome: 'ok' })
  t.strictSame(upstream.seen.map(({ json }) => json['model']), ['next'])
  t.match(balances.read('all'), { active: 0 })
  t.strictSame(logged, [])
})

t.test('an error handler sends no request whose model its key may not use', async (t) => {
  const upstream = await startUpstream(t)
  const logged: string[] = []
  const app = Fastify({ logger: { level: 'error', stream: { write: (line: string) => { logged.push(line) } } } })
  t.teardown(() => app.close())
  await app.register(llmGateway, {
    ...gatewayOptions(upstream.url, { routes: false }), groups: { all: { protocols: everyProtocol, models: ['small'] } },
  })
  app.setErrorHandler((error, { url }, reply) => /none of mine/.test(String(error)) ? reply.from(url) : reply.send(error))
  app.addHook('onSend', async (_request, { statusCode }) => { if (statusCode === 403) throw new Error('none of mine') })
  await app.register(httpProxy, { upstream: upstream.url, prefix: '/v1', rewritePrefix: '/v1' })
  const reply = await app.inject({
    method: 'POST',
    url: '/v1/chat/completions',
    headers: { authorization: `Bearer ${secret}` },
    payload: { model: 'large', messages: [{ role: 'user', content: 'x' }] },
  })
  t.equal(reply.statusCode, 500)
  t.strictSame(upstream.seen, [])
  t.match(logged.join(), /would send it before its model and limits were checked/)
})

t.test('a plain mount sends a body that no type names as JSON', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(usage)
  await app.register(httpProxy, { upstream: upstream.url, prefix: '/v1', rewritePrefix: '/v1' })
  const body = '{"model":"m","messages":[{"role":"user","content":"x"}]}'
  const head = ['POST /v1/chat/completions HTTP/1.1', 'host: h', `authorization: Bearer ${secret}`]
  t.equal((await askOnce(await listen(app), head, body)).status, 200)
  const sent = await upstream.requests.next()
  t.equal(sent.headers['content-type'], 'application/json')
  t.same(sent.json, JSON.parse(body))
})
