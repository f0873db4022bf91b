import t from 'tap'
import { callOf } from '../../plugins/upstreams/call.js'
import type { UpstreamOptions } from '../../plugins/upstreams/options.js'
import { secret, startGateway } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'
import { requestTo, upstreamOf, type Asked } from './request.js'

type Case = readonly [base: UpstreamOptions, asked: string, sent: string, more?: Asked]

const chat = '/v1/chat/completions'
const messages = '/v1/messages'
const generate = '/v1beta/models/gemini-2:generateContent'

t.test('every base is reached: what follows the version is put behind it, or the version too', async (t) => {
  const verbatim = (url: string, more: Omit<UpstreamOptions, 'url'> = {}): UpstreamOptions => ({ url, path: 'verbatim', ...more })
  const cases: readonly Case[] = [
    [{ url: 'https://h' }, chat, '/v1/chat/completions'],
    [{ url: 'https://h/v1' }, chat, '/v1/chat/completions'],
    [{ url: 'https://h/openai/v1/' }, chat, '/openai/v1/chat/completions'],
    [{ url: 'https://h/anthropic' }, messages, '/anthropic/v1/messages'],
    [verbatim('https://h/v1beta/openai/'), chat, '/v1beta/openai/chat/completions'],
    [verbatim('https://h/api/paas/v4'), chat, '/api/paas/v4/chat/completions'],
    [verbatim('https://h/api/v3'), '/v1/responses', '/api/v3/responses'],
    [verbatim('https://h/v2'), '/v1/embeddings', '/v2/embeddings'],
    [verbatim('https://h/compatible-mode/v1'), chat, '/compatible-mode/v1/chat/completions'],
    [verbatim('https://h/inference'), chat, '/inference/chat/completions'],
    [verbatim('https://h/anthropic/v1'), messages, '/anthropic/v1/messages'],
    [verbatim('https://h/v1/acct/gw/anthropic/v1'), messages, '/v1/acct/gw/anthropic/v1/messages'],
    [
      verbatim('https://h/v1/projects/p/locations/l/endpoints/openapi'), chat,
      '/v1/projects/p/locations/l/endpoints/openapi/chat/completions',
    ],
    [
      verbatim('https://h/v1/projects/p/locations/l/publishers/google'),
      generate,
      '/v1/projects/p/locations/l/publishers/google/models/gemini-2:generateContent',
    ],
    [verbatim('https://h'), chat, '/chat/completions'],
    [verbatim('https://h'), '/v1/responses/resp_1?stream=false', '/responses/resp_1?stream=false', { method: 'GET' }],
    [verbatim('https://h/openai/v1', { query: { 'api-version': 'preview' } }), chat, '/openai/v1/chat/completions?api-version=preview'],
    [
      verbatim('https://h/openai/deployments/{model}', { query: { 'api-version': '2024-10-21' }, models: { 'gpt-5': 'prod gpt/5' } }),
      chat, '/openai/deployments/prod%20gpt%2F5/chat/completions?api-version=2024-10-21', { model: 'gpt-5' },
    ],
    [verbatim('https://h/openai/deployments/{model}'), chat, '/openai/deployments/%24%26/chat/completions', { model: '$&' }],
    [
      verbatim('https://h/api/paas/v4/', { query: { 'api-version': 1 } }), `${chat}?x=%2F`,
      '/api/paas/v4/chat/completions?api-version=1&x=%2F',
    ],
    [
      verbatim('https://h', { query: { 'api-version': 1, 'a b': 'c&d' } }), `${chat}?x=%2F&&api-version=9&api%2dversion=8&API-VERSION=7&%zz&a+b=2`,
      '/chat/completions?api-version=1&a%20b=c%26d&x=%2F&%zz',
    ],
    [verbatim('https://h', { query: { 'Api-Version': 1 } }), `${chat}?api-version=9&Api-Version=8`, '/chat/completions?Api-Version=1'],
    [{ url: 'https://h' }, `${chat}?x=%2F&&`, '/v1/chat/completions?x=%2F&&'],
    [
      { url: 'https://h', models: { ours: 'theirs' } }, `${chat}?x=%2F&model=ours&m%6fdel=ours&a;model=ours&models=&y`,
      '/v1/chat/completions?x=%2F&models=&y', { model: 'ours' },
    ],
    [{ url: 'https://h', models: { ours: 'theirs' } }, `${chat}?model=ours`, '/v1/chat/completions', { model: 'ours' }],
    [{ url: 'https://h', models: { ours: 'theirs' } }, `${chat}?model=m`, '/v1/chat/completions?model=m', { model: 'm' }],
    [{ url: 'https://h' }, `${generate}?alt=sse`, '/v1beta/models/gemini-2:generateContent?alt=sse'],
    [
      { url: 'https://h', models: { 'gemini-2': 'gemini/2@x:y z' } }, `${generate}?alt=sse`,
      '/v1beta/models/gemini/2@x:y%20z:generateContent?alt=sse',
    ],
    [{ url: 'https://h', models: { 'gemini-2': 'models/g' } }, generate, '/v1beta/models/g:generateContent'],
    [
      { url: 'https://h', models: { 'tunedModels/a': 'tunedModels/b' } }, '/v1beta/tunedModels/a:generateContent',
      '/v1beta/tunedModels/b:generateContent',
    ],
    [{ url: 'https://h', models: { ours: 'org/theirs' } }, '/v1/models/ours', '/v1/models/org/theirs', { method: 'GET' }],
  ]
  for (const [base, asked, sent, more] of cases) {
    t.match(callOf(upstreamOf(base), requestTo(asked, more), null, null), { path: sent }, `${base.url} ${asked}`)
  }
})

t.test('a base that needs the model refuses a request that names none', async (t) => {
  const upstream = upstreamOf({ url: 'https://h/deployments/{model}', path: 'verbatim' })
  t.match(callOf(upstream, requestTo('/v1/models', { method: 'GET' }), null, null), { code: 'model_required', statusCode: 400 })
})

t.test('no model leads out of the place that a base has for it', async (t) => {
  const { url, seen } = await startUpstream(t)
  const { app } = await startGateway(t, '', {
    upstreams: {
      azure: { url: `${url}/deployments/{model}`, path: 'verbatim', credential: 's3' },
    },
  })
  const ask = async (model: string): Promise<number> => (await app.inject({
    method: 'POST',
    url: '/v1/chat/completions',
    headers: { authorization: `Bearer ${secret}` },
    payload: { model, messages: [{ role: 'user', content: 'x' }] },
  })).statusCode
  for (const model of ['..', '.', '../../admin', 'a/..', 'a/./b', '..\\admin', 'a\\..\\..\\b']) t.equal(await ask(model), 404, model)
  t.equal(seen.length, 0)
  for (const model of ['gpt-5.4', 'org/m..1', '...', '.m']) await ask(model)
  t.strictSame(seen.map((request) => request.url), [
    '/deployments/gpt-5.4/chat/completions', '/deployments/org%2Fm..1/chat/completions', '/deployments/.../chat/completions',
    '/deployments/.m/chat/completions',
  ])
})

t.test('the credential stands in one header: of the family, or of the upstream', async (t) => {
  const cases: ReadonlyArray<readonly [options: Omit<UpstreamOptions, 'url'>, url: string, headers: readonly unknown[]]> = [
    [{ credential: 's3' }, chat, [['authorization', 'Bearer s3']]],
    [{ credential: 's3' }, messages, [['x-api-key', 's3']]],
    [{ credential: 's3' }, generate, [['x-goog-api-key', 's3']]],
    [{ credential: 's3', credentialHeader: 'API-Key' }, chat, [['api-key', 's3']]],
    [{ credential: 's3', credentialHeader: 'authorization' }, messages, [['authorization', 'Bearer s3']]],
    [{ credential: 's3', headers: { 'X-Org': 'o 1' } }, chat, [['x-org', 'o 1'], ['authorization', 'Bearer s3']]],
    [{ credential: 'forward', credentialHeader: 'x-caller' }, chat, [['x-caller', 'callers']]],
    [{ credential: 'forward' }, generate, [['x-goog-api-key', 'callers']]],
    [{}, chat, []],
  ]
  for (const [options, url, headers] of cases) {
    const upstream = upstreamOf({ url: 'https://h', ...options })
    const llm = requestTo(url)
    llm.auth.keepSecret('callers')
    const secret = await upstream.secret.current()
    t.match(callOf(upstream, llm, secret, null), { headers }, JSON.stringify(options))
    t.match(callOf(upstream, llm, secret, null), { headers }, 'and the second time')
  }
  const changing = upstreamOf({ url: 'https://h', credential: () => 'x' })
  t.match(callOf(changing, requestTo(chat), 'one', null), { headers: [['authorization', 'Bearer one']] })
  t.match(callOf(changing, requestTo(chat), 'two', null), { headers: [['authorization', 'Bearer two']] }, 'a secret that changed')
})
