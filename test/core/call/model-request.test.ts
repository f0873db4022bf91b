import Fastify from 'fastify'
import t from 'tap'
import { type ModelRequest } from '../../../plugins/index.js'
import { secret, startGateway } from '../../helpers/gateway.js'
import { replyFixture, startUpstream } from '../../helpers/upstream.js'

const post = {
  method: 'POST',
  url: '/v1/chat/completions',
  headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
  payload: '{"model":"m","messages":[{"role":"user","content":"hi"}]}',
} as const

t.test('a host reads a model request as far as it has come, and cannot write it', async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url)
  const seen: Array<ModelRequest | null> = []
  app.addHook('preHandler', async (request) => {
    seen.push(request.llm)
    t.match(request.llm, {
      protocol: 'chat_completions', endpoint: 'chat_completions', model: 'm', stream: false, key: { id: 'caller' }, group: { id: 'all' },
    })
    t.match(request.llm, { usage: null, cost: null, outcome: null })
    t.throws(() => Object.assign(request, { llm: null }), TypeError)
    t.throws(() => Object.assign(Object(request.llm), { model: 'x' }), TypeError)
  })
  app.addHook('onResponse', async (request) => { seen.push(request.llm) })
  const settled: ModelRequest[] = []
  app.llm.onSettled((request) => { settled.push(request) })
  upstream.queue({ fixture: 'chat_completions.json' })
  const reply = await app.inject(post)
  t.equal(reply.body, replyFixture('chat_completions.json').toString())
  const [request] = settled
  t.match(request, { id: String(reply.headers['x-request-id']), outcome: 'ok', upstream: 'main' })
  t.ok(Number(request?.usage?.output) > 0)
  t.strictSame(Object.keys(JSON.parse(JSON.stringify(request))), [
    'id', 'protocol', 'endpoint', 'model', 'stream', 'key', 'group', 'usage', 'cost', 'outcome', 'upstream',
  ])
  t.match(JSON.parse(JSON.stringify(request)), { key: 'caller', group: 'all', model: 'm' })
  t.strictSame(seen, [request, request], 'the same view each time')
})

t.test('before anybody is let in a view tells nobody', async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url)
  const settled: unknown[] = []
  app.llm.onSettled((request) => { settled.push(JSON.parse(JSON.stringify(request))) })
  await app.inject({ ...post, headers: {} })
  t.match(settled, [{ key: null, group: null, usage: null, outcome: 'auth_error', upstream: null }])
})

t.test('a listener that throws is logged, and the others hear all the same', async (t) => {
  const upstream = await startUpstream(t)
  const lines: string[] = []
  const { app } = await startGateway(t, upstream.url, {}, { logger: { level: 'error', stream: { write: (line) => { lines.push(line) } } } })
  const settled: unknown[] = []
  t.throws(() => Reflect.apply(app.llm.onSettled, null, ['x']), { code: 'LLM_GATEWAY_OPTION', message: /onSettled must be a function/ })
  app.llm.onSettled(() => { throw new Error('of the host') })
  app.llm.onSettled(({ outcome }, request) => { settled.push([outcome, request.url]) })
  t.equal((await app.inject(post)).statusCode, 200)
  t.strictSame(settled, [['ok', '/v1/chat/completions']])
  t.match(lines.join(''), /of the host.*a model request could not be settled in full/s)
})

t.test('without keys there is nothing to forget', async (t) => {
  const { usage } = await import('../../../plugins/index.js')
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(usage)
  app.get('/', async (request) => ({ llm: request.llm }))
  t.doesNotThrow(() => app.llm.invalidateKeys({ group: '*' }))
  t.strictSame((await app.inject('/')).json(), { llm: null })
})
