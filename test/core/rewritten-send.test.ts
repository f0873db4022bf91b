import httpProxy from '@fastify/http-proxy'
import replyFrom from '@fastify/reply-from'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import llmGateway, { type LlmGatewayOptions } from '../../plugins/index.js'
import { everyProtocol, listen, secret } from '../helpers/gateway.js'
import { startUpstream, type Upstream } from '../helpers/upstream.js'
import { askOnce } from '../helpers/wire.js'

const bearer = `authorization: Bearer ${secret}`
const chat = '{"model":"m","messages":[{"role":"user","content":"hi"}]}'
const guarded: LlmGatewayOptions = {
  groups: { all: { protocols: everyProtocol } }, keys: [{ id: 'caller', group: 'all', secret }], routes: false,
}

async function start (t: Test, upstream: Upstream, mount: object, options: LlmGatewayOptions): Promise<Ask> {
  const app: FastifyInstance = Fastify()
  t.teardown(() => app.close())
  await app.register(llmGateway, options)
  await app.register(httpProxy, { upstream: upstream.url, ...mount })
  const url = await listen(app)
  return async (method, path, ...headers) => {
    const body = method === 'POST' ? chat : undefined
    return (await askOnce(url, [`${method} ${path} HTTP/1.1`, 'host: h', 'content-type: application/json', ...headers], body)).status
  }
}

type Ask = (method: string, path: string, ...headers: string[]) => Promise<number>

const mounts: Record<string, object> = {
  'a parameter that a version takes the place of': { prefix: '/:any', rewritePrefix: '/v1' },
  'a parameter that is left out': { prefix: '/:any' },
  'a version put in front': { prefix: '/', rewritePrefix: '/v1/' },
  'a version deeper in the address': { prefix: '/:any', rewritePrefix: '/openai/v1' },
}

for (const [how, mount] of Object.entries(mounts)) {
  t.test(`no mount makes a model request of what nobody was asked a key for: ${how}`, async (t) => {
    const upstream = await startUpstream(t)
    const ask = await start(t, upstream, mount, guarded)
    for (const path of ['/x/chat/completions', '/x/v1/chat/completions', '/files', '/x/v1/files', '/x/files', '/x/%76%31/files']) {
      for (const method of ['GET', 'POST']) {
        for (const headers of [[], [bearer]]) await ask(method, path, ...headers)
      }
    }
    const came = upstream.seen.map(({ url }) => url).filter((url) => /\/(?:v1|%76%31)\/|completions/.test(url))
    t.strictSame(came, [])
  })
}

t.test('what such a mount sends where no version is passes, and model requests do', async (t) => {
  const upstream = await startUpstream(t)
  const ask = await start(t, upstream, { prefix: '/:any', rewritePrefix: '/v1' }, guarded)
  t.equal(await ask('POST', '/v1/chat/completions'), 401)
  t.equal(await ask('POST', '/v1/chat/completions', bearer), 200)
  t.equal(await ask('GET', '/x/files'), 404)
  t.equal(upstream.seen.length, 1)
  upstream.respond = () => ({ body: {} })
  const plain = await start(t, upstream, { prefix: '/', rewritePrefix: '/app/' }, guarded)
  t.equal(await plain('GET', '/x/files?a=1'), 200)
  const same = await start(t, upstream, { prefix: '/' }, guarded)
  t.equal(await same('GET', '/x/v1/files'), 200)
  t.strictSame(upstream.seen.slice(1).map(({ url }) => url), ['/app/x/files?a=1', '/x/v1/files'])
})

t.test('a route that sends a request where it came to is left alone', async (t) => {
  const upstream = await startUpstream(t)
  upstream.respond = () => ({ body: {} })
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(llmGateway, guarded)
  await app.register(replyFrom, { base: upstream.url })
  app.get('/:any/*', (_request, reply) => reply.from())
  t.equal((await app.inject('/x/v1/files')).statusCode, 200)
})

t.test('a host may have unknown paths pass, and endpoints do not pass with them', async (t) => {
  const upstream = await startUpstream(t)
  upstream.respond = () => ({ body: {} })
  const ask = await start(t, upstream, { prefix: '/:any', rewritePrefix: '/v1' }, { ...guarded, auth: { unknown: 'leave' } })
  t.equal(await ask('GET', '/x/files'), 200)
  t.equal(await ask('POST', '/x/chat/completions'), 404)
  t.strictSame(upstream.seen.map(({ url }) => url), ['/v1/files'])
})

t.test('the start warns of a mount that sends to a version what nobody is asked a key for', async (t) => {
  async function warned (mount: object): Promise<boolean> {
    const lines: string[] = []
    const app = Fastify({ logger: { level: 'warn', stream: { write: (line: string) => { lines.push(line) } } } })
    t.teardown(() => app.close())
    await app.register(llmGateway, guarded)
    await app.register(httpProxy, { upstream: 'http://127.0.0.1:1', ...mount })
    await app.ready()
    return lines.some((line) => line.includes('nobody is asked for a key there'))
  }
  t.equal(await warned({ prefix: '/llm', rewritePrefix: '/v1' }), true)
  t.equal(await warned({ prefix: '/llm', upstream: 'http://127.0.0.1:1/openai/v1' }), true)
  t.equal(await warned({ prefix: '/llm/v1', rewritePrefix: '/v1' }), true)
  t.equal(await warned({ prefix: '/v1', rewritePrefix: '/v1' }), false, 'it is guarded')
  t.equal(await warned({ prefix: '/:any', rewritePrefix: '/v1' }), false, 'what it sends is looked at')
  t.equal(await warned({ prefix: '/app', rewritePrefix: '/backend' }), false)
  t.equal(await warned({ prefix: '/app', upstream: '', replyOptions: { getUpstream: () => 'http://127.0.0.1:1' } }), false)
})
