import httpProxy from '@fastify/http-proxy'
import Fastify from 'fastify'
import t, { type Test } from 'tap'
import llmGateway, { proxyOptions } from '../../plugins/index.js'
import { mountProblem } from '../../plugins/forward/mount-address.js'
import { everyProtocol, secret } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'

const api = 'https://provider.example'

t.test('what a mount cannot send is known by its options', (t) => {
  for (const [prefix, upstream, rewritePrefix, isFatal] of [
    ['/', api, undefined, undefined],
    ['/', `${api}/`, undefined, undefined],
    ['/', `${api}/v1/`, undefined, undefined],
    ['/', `${api}/v1`, undefined, true],
    ['/', `${api}/v1`, '', true],
    ['/', api, '/api', true],
    ['/', api, '/api/', undefined],
    ['/', `${api}/v1`, '/', false],
    ['/', `${api}/api/`, '/', false],
    ['/v1', `${api}/v1`, undefined, undefined],
    ['/v1', `${api}/v1`, '/v1', undefined],
    ['/v1', `${api}/v1`, '', undefined],
    ['/v1', `${api}/v1`, '/v1beta', false],
    ['/v1', `${api}/v1`, '/llm/v1', false],
    ['/v1', `${api}/openai/v1`, '/v1', false],
    ['/v1', `${api}/openai`, '/openai/v1', undefined],
    ['/v1', api, '/v1', undefined],
    ['/v1', undefined, '/v1', undefined],
    ['/v1', 'no address', '/v1', undefined],
  ] as const) {
    t.equal(mountProblem(prefix, { upstream, rewritePrefix })?.isFatal, isFatal, `${prefix} ${upstream} ${rewritePrefix}`)
  }
  t.equal(mountProblem('/', { upstream: `${api}/v1`, replyOptions: { getUpstream: () => api } }), null, 'the host says where each goes')
  t.end()
})

async function mounted (t: Test, upstream: string, rewritePrefix?: string) {
  const lines: string[] = []
  const app = Fastify({ logger: { level: 'warn', stream: { write: (line: string) => { lines.push(line) } } } })
  t.teardown(() => app.close())
  await app.register(llmGateway, {
    groups: { all: { protocols: everyProtocol } }, keys: [{ id: 'caller', group: 'all', secret }], routes: false,
  })
  await app.register(httpProxy, { ...proxyOptions(), upstream, prefix: '/', ...rewritePrefix !== undefined && { rewritePrefix } })
  return { app, lines }
}

t.test('a mount that sends nothing fails the start, and says by which option', async (t) => {
  const { app } = await mounted(t, `${api}/v1`)
  await t.rejects(async () => await app.ready(), {
    code: 'LLM_GATEWAY_OPTION', message: /mount at \/, which has a rewritePrefix or an upstream that ends in \/v1, .* must end in \/v1\/$/,
  })
})

t.test('a mount that sends some of what is asked starts, and says what it does not send', async (t) => {
  const upstream = await startUpstream(t)
  const { app, lines } = await mounted(t, `${upstream.url}/v1`, '/')
  const ask = async (url: string): Promise<number> => (await app.inject({
    method: 'POST',
    url,
    headers: { authorization: `Bearer ${secret}`, 'x-goog-api-key': secret },
    payload: { model: 'm', messages: [{ role: 'user', content: 'hi' }], contents: [{ parts: [{ text: 'hi' }] }] },
  })).statusCode
  t.equal(await ask('/v1/chat/completions'), 200)
  t.equal(await ask('/v1beta/models/m:generateContent'), 500)
  t.match(lines.join(''), /mount at \/, which has an upstream with the path \/v1\/ and the rewritePrefix \/: reply-from refuses/)
})
