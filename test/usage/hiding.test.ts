import httpProxy from '@fastify/http-proxy'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import llmGateway, { usage } from '../../plugins/index.js'
import { everyProtocol, gatewayOptions, providerSecret, secret, startGateway } from '../helpers/gateway.js'
import { startUpstream, type Upstream } from '../helpers/upstream.js'

const headers = { 'x-goog-api-key': secret, 'content-type': 'application/json' }
const payload = '{"contents":[{"parts":[{"text":"x"}]}]}'
const metered = ['generateContent', 'streamGenerateContent', 'embedContent', 'batchEmbedContents']
const bodies: Readonly<Record<string, string>> = {
  embedContent: '{"content":{"parts":[{"text":"x"}]}}',
  batchEmbedContents: '{"requests":[{"model":"models/m","content":{"parts":[{"text":"x"}]}}]}',
}

type Call = { query?: string, headers?: Record<string, string> }

const hiding: readonly Call[] = [
  ...[
    'fields=candidates', 'fields=candidates,usageMetadata/promptTokenCount', 'fields=', 'fields', '$fields=x', '%24fields=x', 'FIELDS=x',
    '%66ields=x', 'fields[]=x', '$%66ields=x', '%2524fields=x',
    'a=1&fields=x', 'a=1;fields=x', ';fields=x', 'alt=proto', 'alt=media', 'Alt=proto', '$alt=proto', '%24alt=proto', 'alt=json&alt=proto',
    '$alt=json;enum-encoding=int&$alt=proto', 'alt=', 'alt=SSE',
    'callback=f', '$callback=f', 'CALLBACK=f', 'alt=sse&%63allback=f', 'alt=%70roto', '+fields=x',
  ].map((query) => ({ query })),
  ...[
    { 'x-goog-fieldmask': 'candidates' }, { 'X-Goog-FieldMask': 'candidates' }, { x_goog_fieldmask: 'candidates' },
    { accept: 'application/x-protobuf' }, { accept: 'text/html, Application/Protobuf;q=1' },
    { 'x-goog-encode-response-if-executable': 'base64' },
  ].map((given) => ({ headers: given })),
]

const plain: readonly Call[] = [
  { query: 'alt=sse' }, { query: 'alt=json' }, { query: '$alt=json;enum-encoding=int' }, { query: '%24alt=json%3Benum-encoding%3Dint' },
  { query: 'prettyPrint=false&fieldsx=1' },
  { headers: { accept: 'application/json, */*' } }, {},
]

async function apps (t: Test, upstream: Upstream): Promise<Record<string, FastifyInstance>> {
  const own = Fastify()
  await own.register(llmGateway, gatewayOptions(upstream.url))
  const alone = Fastify()
  await alone.register(usage)
  await alone.register(httpProxy, {
    upstream: upstream.url, replyOptions: { rewriteRequestHeaders: (_, given) => ({ ...given, 'x-goog-api-key': providerSecret }) },
  })
  t.teardown(() => own.close())
  t.teardown(() => alone.close())
  return { 'our own routes': own, 'usage alone beside a mount': alone }
}

t.test('a caller cannot have a metered reply hide its usage', async (t) => {
  const upstream = await startUpstream(t)
  for (const [place, app] of Object.entries(await apps(t, upstream))) {
    for (const action of metered) {
      for (const { query = '', headers: given } of hiding) {
        const reply = await app.inject({
          method: 'POST', url: `/v1beta/models/m:${action}?${query}`, headers: { ...headers, ...given }, payload: bodies[action] ?? payload,
        })
        t.match(
          [reply.statusCode, reply.json().error?.status], [400, 'INVALID_ARGUMENT'], `${place}: ${action} ${query} ${JSON.stringify(given)}`
        )
        t.match(reply.json().error.details[0].reason, 'USAGE_HIDDEN')
      }
    }
  }
  t.equal(upstream.seen.length, 0)
})

t.test('nor at an address of another protocol, which may have Google behind it', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(llmGateway, gatewayOptions(upstream.url))
  const messages = [{ role: 'user', content: 'hi' }]
  const calls: ReadonlyArray<readonly [url: string, body: object]> = [
    ['/v1/chat/completions', { model: 'm', messages }],
    ['/v1/responses', { model: 'm', input: 'x' }],
    ['/v1/embeddings', { model: 'm', input: 'x' }],
    ['/v1/images/generations', { model: 'm', prompt: 'x' }],
    ['/v1/messages', { model: 'm', max_tokens: 5, messages }],
  ]
  const own = { authorization: `Bearer ${secret}`, 'content-type': 'application/json', 'anthropic-version': '2023-06-01' }
  for (const [url, body] of calls) {
    for (const { query = '', headers: given } of hiding) {
      const reply = await app.inject({ method: 'POST', url: `${url}?${query}`, headers: { ...own, ...given }, payload: body })
      t.equal(reply.statusCode, 400, `${url} ${query} ${JSON.stringify(given)}`)
      t.match(reply.body, /usage_hidden/)
    }
  }
  t.equal(upstream.seen.length, 0)
})

t.test('what changes nothing of the usage passes, and so does what is not metered', async (t) => {
  const upstream = await startUpstream(t)
  for (const app of Object.values(await apps(t, upstream))) {
    for (const { query = '', headers: given } of plain) {
      const reply = await app.inject({
        method: 'POST', url: `/v1beta/models/m:generateContent?${query}`, headers: { ...headers, ...given }, payload,
      })
      t.equal(reply.statusCode, 200, query)
    }
    const count = await app.inject({ method: 'POST', url: '/v1beta/models/m:countTokens?fields=totalTokens', headers, payload })
    t.equal(count.statusCode, 200, count.body)
    const list = await app.inject({ method: 'GET', url: '/v1beta/models?fields=models', headers: { 'x-goog-api-key': secret } })
    t.equal(list.statusCode, 200, list.body)
  }
})

t.test('a method that a header or the query would put in the place of the request\'s own stays here', async (t) => {
  const upstream = await startUpstream(t)
  for (const app of Object.values(await apps(t, upstream))) {
    const overrides = {
      'x-http-method-override': 'DELETE', 'X-HTTP-Method': 'DELETE', 'x-method-override': 'DELETE', x_http_method_override: 'DELETE',
    }
    const reply = await app.inject({
      method: 'POST',
      url: '/v1beta/models/m:generateContent?$httpMethod=DELETE&httpHeaders=a',
      headers: { ...headers, ...overrides },
      payload,
    })
    t.equal(reply.statusCode, 200)
    const { url, rawHeaders } = await upstream.requests.next()
    t.notMatch([url, ...rawHeaders].join(), /DELETE|override|httpMethod|httpHeaders/i)
  }
})

t.test('models that a body names beside its own obey the same policy', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(llmGateway, {
    ...gatewayOptions(upstream.url), groups: { all: { protocols: everyProtocol, models: ['m', 'n', 'tunedModels/t'] } },
  })
  const messages = [{ role: 'user', content: 'hi' }]
  const chat = { model: 'm', messages }
  const adding = (model: string): object => ({
    model: 'm', messages: [{ role: 'user', content: [{ type: 'tool_addition', tool: { definition: { type: 'advisor', model } } }] }],
  })
  const changing = (model: string): object => ({
    model: 'm', messages: [{ role: 'user', content: [{ tool_changes: [{ tool: { definition: { type: 'advisor', model } } }] }] }],
  })
  const content = { parts: [{ text: 'x' }] }
  const count = (model: unknown): object => ({ generateContentRequest: { model, contents: [content] } })
  const batch = (...models: string[]): object => ({ requests: models.map((model) => ({ model, content })) })
  const cases: ReadonlyArray<readonly [url: string, body: object, status: number]> = [
    ['/v1/chat/completions', { ...chat, models: ['m', 'n'] }, 200],
    ['/v1/chat/completions', { ...chat, models: ['m', 'dear'] }, 403],
    ['/v1/chat/completions', { ...chat, models: 'dear' }, 403],
    ['/v1/chat/completions', { ...chat, models: null, fallbacks: 7 }, 200],
    ['/v1/chat/completions', { ...chat, fallbacks: ['dear'] }, 403],
    ['/v1/chat/completions', { ...chat, fallbacks: [{ model: 'dear', messages }] }, 403],
    ['/v1/chat/completions', { ...chat, fallbacks: [{ model: 'n', messages }] }, 200],
    ['/v1/chat/completions', { ...chat, fallbacks: [{ m: ['n', 'dear'] }] }, 403],
    ['/v1/chat/completions', { ...chat, fallbacks: [{ m: ['n'] }] }, 200],
    ['/v1/chat/completions', { ...chat, context_window_fallbacks: [{ m: ['dear'] }] }, 403],
    ['/v1/embeddings', { model: 'm', input: 'x', content_policy_fallbacks: [{ m: ['dear'] }] }, 403],
    ['/v1/chat/completions', { ...chat, providerOptions: { gateway: { models: ['n', 'dear'] } } }, 403],
    ['/v1/chat/completions', { ...chat, compound_custom: { models: { reasoning_model: 'n', answering_model: 'dear' } } }, 403],
    ['/v1/chat/completions', { ...chat, compound_custom: { models: { answering_model: 'n' }, tools: { enabled_tools: ['dear'] } } }, 200],
    ['/v1/embeddings', { model: 'm', input: 'x', user_config: { model_list: [{ litellm_params: { model: 'dear' } }] } }, 403],
    ['/v1/responses', { model: 'm', input: 'x', providerOptions: { gateway: { models: ['n'] }, openai: { user: 'dear' } } }, 200],
    ['/v1/responses', { model: 'm', input: 'x', tools: [{ type: 'image_generation', model: 'dear' }] }, 403],
    ['/v1/responses', { model: 'm', input: 'x', tools: [{ type: 'image_generation', model: 'n', svg: { model: 'dear' } }] }, 403],
    ['/v1/responses', { model: 'm', input: 'x', tools: [{ type: 'namespace', name: 'x', tools: [{ model: 'dear' }] }] }, 403],
    ['/v1/responses', { model: 'm', input: 'x', tools: [{ type: 'namespace', name: 'x', tools: [{ svg: { model: 'dear' } }] }] }, 403],
    ['/v1/responses', { model: 'm', input: [{ type: 'additional_tools', tools: [{ type: 'image_generation', model: 'dear' }] }] }, 403],
    ['/v1/responses', { model: 'm', input: [{ type: 'additional_tools', tools: [{ model: 'n', svg: { model: 'dear' } }] }] }, 403],
    ['/v1/responses', { model: 'm', input: [{ type: 'additional_tools', tools: [{ tools: [{ model: 'dear' }] }] }] }, 403],
    ['/v1/responses', { model: 'm', input: [{ type: 'additional_tools', tools: [{ tools: [{ svg: { model: 'dear' } }] }] }] }, 403],
    ['/v1/responses/compact', { model: 'm', input: 'x', fallbacks: ['dear'] }, 403],
    ['/v1/responses/compact', { model: 'm', input: [{ type: 'additional_tools', tools: [{ model: 'dear' }] }] }, 403],
    ['/v1/responses', { model: 'm', input: [{ type: 'tool_search_output', tools: [{ Model: 'dear' }] }] }, 403],
    ['/v1/responses', { model: 'm', input: [{ role: 'user', content: 'dear' }, { type: 'x', tools: [{ model: 'n' }] }] }, 200],
    ['/v1/images/generations', { model: 'm', prompt: 'x', svg: { model: 'dear' } }, 403],
    ['/v1/messages', { ...adding('dear'), max_tokens: 5 }, 403],
    ['/v1/messages', { ...adding('n'), max_tokens: 5 }, 200],
    ['/v1/messages', { ...changing('dear'), max_tokens: 5 }, 403],
    ['/v1/messages', { ...changing('n'), max_tokens: 5 }, 200],
    ['/v1/responses', { model: 'm', input: 'x', tools: [{ type: 'web_search' }] }, 200],
    ['/v1/messages', { model: 'm', max_tokens: 5, messages, fallbacks: ['dear'] }, 403],
    ['/v1/messages', { model: 'm', max_tokens: 5, messages, tools: [{ type: 'a:advisor', parameters: { model: 'dear' } }] }, 403],
    ['/v1/responses', { model: 'm', input: 'x', tools: [{ type: 'a:image', parameters: { model: 'dear' } }] }, 403],
    ['/v1/chat/completions', { ...chat, tools: [{ type: 'a:fusion', parameters: { analysis_models: ['n', 'dear'] } }] }, 403],
    ['/v1/chat/completions', { ...chat, tools: [{ type: 'a:advisor', parameters: { advisors: [{ name: 'x', model: 'dear' }] } }] }, 403],
    ['/v1/chat/completions', { ...chat, tools: [{ type: 'a:advisor', parameters: { advisors: [{ name: 'dear', model: 'n' }] } }] }, 200],
    ['/v1/chat/completions', { ...chat, advisor: { mode: 'required', model: 'dear' } }, 403],
    ['/v1/responses', { model: 'm', input: 'x', advisor: { model: 'n' } }, 200],
    ['/v1/chat/completions', { ...chat, plugins: [{ id: 'fusion', model: 'dear' }] }, 403],
    ['/v1/chat/completions', { ...chat, plugins: [{ id: 'fusion', analysis_models: ['m', 'n'], model: 'n' }, { id: 'web' }] }, 200],
    ['/v1/responses', { model: 'm', input: 'x', tools: [{ type: 'function', name: 'f', parameters: { properties: { model: {} } } }] }, 200],
    ['/v1beta/models/m:countTokens', count('models/dear'), 403],
    ['/v1beta/models/m:countTokens', { generate_content_request: { model: 'dear', contents: [content] } }, 403],
    ['/v1beta/models/m:countTokens', { model: 'models/dear', contents: [content] }, 403],
    ['/v1beta/models/m:countTokens', count('models/n'), 200],
    ['/v1beta/models/m:countTokens', count('n'), 200],
    ['/v1beta/models/m:generateContent', { model: 'models/dear', contents: [content] }, 403],
    ['/v1beta/models/m:batchEmbedContents', batch('models/m', 'models/dear'), 403],
    ['/v1beta/models/m:batchEmbedContents', batch('models/m', 'models/n', 'tunedModels/t'), 200],
    ['/v1beta/models/m:batchEmbedContents', batch('tunedModels/m'), 403],
    ['/v1beta/models/m:batchEmbedContents', { model: 'models/dear', ...batch('models/m') }, 403],
    ['/v1beta/models/m:embedContent', { model: 'models/dear', content }, 403],
  ]
  for (const [url, body, status] of cases) {
    const before = upstream.seen.length
    const reply = await app.inject({
      method: 'POST',
      url,
      headers: {
        ...url.includes('beta') ? { 'x-goog-api-key': secret } : { authorization: `Bearer ${secret}` },
        'content-type': 'application/json',
        'anthropic-version': '2023-06-01',
      },
      payload: body,
    })
    t.equal(reply.statusCode, status, `${url} ${JSON.stringify(body)}: ${reply.body}`)
    t.equal(upstream.seen.length - before, status === 200 ? 1 : 0)
    if (status === 403) t.match(reply.body, /may not use the model [^ ]+\."/)
  }
})

t.test('a model that may take the place of the one asked for is known as such wherever a body can name it', async (t) => {
  const upstream = await startUpstream(t)
  const { app, settled } = await startGateway(t, upstream.url)
  const named = { model: 'm', fallbacks: [{ model: 'n' }], tools: [{ type: 'advisor', parameters: { model: 'advisor' } }] }
  for (const [url, body] of [
    ['/v1/chat/completions', { messages: [{ role: 'user', content: 'x' }] }],
    ['/v1/responses', { input: 'x' }],
    ['/v1/responses/compact', { input: 'x' }],
    ['/v1/messages', { max_tokens: 1, messages: [{ role: 'user', content: 'x' }] }],
    ['/v1/images/generations', { prompt: 'x' }],
    ['/v1/embeddings', { input: 'x' }],
  ] as const) {
    await app.inject({
      method: 'POST',
      url,
      headers: { authorization: `Bearer ${secret}`, 'anthropic-version': '2023-06-01' },
      payload: { ...named, ...body },
    })
    t.strictSame((await settled.next()).body.substitutes, ['n'], url)
  }
})

t.test('so do those that a header names', async (t) => {
  const upstream = await startUpstream(t)
  for (const [models, status] of [[['m', 'n'], 403], [undefined, 200]] as const) {
    const app = Fastify()
    t.teardown(() => app.close())
    await app.register(llmGateway, {
      ...gatewayOptions(upstream.url), groups: { all: { protocols: everyProtocol, ...models && { models } } },
    })
    const ask = async (name: string, value: string): Promise<number> => (await app.inject({
      method: 'POST',
      url: '/v1/responses',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', [name]: value },
      payload: { model: 'm', input: 'x', tools: [{ type: 'image_generation' }] },
    })).statusCode
    for (const name of ['x-ms-oai-image-generation-deployment', 'X-MS-OAI-Image_Generation_Deployment', 'azureml-model-deployment']) {
      t.equal(await ask(name, 'dear'), status, name)
      t.equal(await ask(name, 'n'), 200, name)
    }
  }
})

t.test('another model in the query than in the body is 403, whatever the group allows', async (t) => {
  const body = ['model', 'prompt'].map((name) => `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\nm\r\n`).join('') + '--b--'
  const upstream = await startUpstream(t)
  for (const models of [['m', 'n'], undefined]) {
    const app = Fastify()
    t.teardown(() => app.close())
    await app.register(llmGateway, {
      ...gatewayOptions(upstream.url), groups: { all: { protocols: everyProtocol, ...models && { models } } },
    })
    const ask = async (query: string, form: boolean): Promise<number> => (await app.inject({
      method: 'POST',
      url: `/v1/${form ? 'images/edits' : 'chat/completions'}?${query}`,
      headers: { authorization: `Bearer ${secret}`, 'content-type': form ? 'multipart/form-data; boundary=b' : 'application/json' },
      payload: form ? body : { model: 'm', messages: [{ role: 'user', content: 'hi' }] },
    })).statusCode
    for (const form of [false, true]) {
      for (const query of ['model=dear', 'model=n', 'a=b&MODEL=dear', 'm%6fdel=dear', 'model[]=dear', 'model=m&model=dear', 'model=']) {
        t.equal(await ask(query, form), 403, query)
      }
      for (const query of ['model=m', 'api-version=1', 'model_id=dear', '']) t.equal(await ask(query, form), 200, query)
      for (const query of ['n=10', 'a=b&N%5B%5D=10', 'stream=true', 'models=dear', 'svg[model]=dear', 'providerOptions.gateway=dear']) {
        t.equal(await ask(query, form), form ? 400 : 200, query)
      }
    }
  }
})

t.test('nor does a model hide behind a key that is there twice, or in other letters', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(llmGateway, { ...gatewayOptions(upstream.url), groups: { all: { protocols: everyProtocol, models: ['m'] } } })
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json', 'anthropic-version': '2023-06-01' }
  const definition = '{"type":"advisor","model":"dear","model":null}'
  for (const [url, payload] of [
    ['/v1/responses', '{"model":"m","input":[{"type":"additional_tools","tools":[{"model":"dear"}],"tools":[]}]}'],
    ['/v1/responses', '{"model":"m","input":[{"type":"additional_tools","tools":[{"model":"dear","model":null}]}]}'],
    ['/v1/responses', '{"model":"m","input":[{"tools":[{"tools":[{"svg":{"model":"dear"}}]}]}]}'],
    ['/v1/messages', `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":[{"tool":{"definition":${definition}}}]}]}`],
    ['/v1/embeddings', '{"model":"m","input":"x","provideroptions":{"gateway":{"models":["dear"]}}}'],
    ['/v1/embeddings', '{"model":"m","input":"x","providerOptions":{},"provideroptions":{"gateway":{"models":["dear"]}}}'],
  ] as const) {
    t.match((await app.inject({ method: 'POST', url, headers, payload })).statusCode, /^40[03]$/, payload)
  }
  t.strictSame(upstream.seen, [])
})

t.test('so do those that a form names', async (t) => {
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(llmGateway, { ...gatewayOptions(upstream.url), groups: { all: { protocols: everyProtocol, models: ['m', 'n'] } } })
  const send = async (path: string, fields: Readonly<Record<string, string>>): Promise<number> => {
    const form = new FormData()
    form.append('image', new Blob(['x']), 'x.png')
    for (const [name, value] of Object.entries({ model: 'm', prompt: 'x', ...fields })) form.append(name, value)
    const sent = new Request('http://gateway', { method: 'POST', body: form })
    const reply = await app.inject({
      method: 'POST',
      url: `/v1/images/${path}`,
      headers: { authorization: `Bearer ${secret}`, 'content-type': String(sent.headers.get('content-type')) },
      payload: Buffer.from(await sent.arrayBuffer()),
    })
    return reply.statusCode
  }
  for (const path of ['edits', 'variations']) {
    t.equal(await send(path, {}), 200)
    t.equal(await send(path, { fallbacks: 'n' }), 200)
    for (const fields of [
      { models: 'dear' }, { 'svg[model]': 'dear' }, { fallbacks: '["n","dear"]' }, { context_window_fallbacks: '[{"m":["dear"]}]' },
    ]) {
      t.equal(await send(path, fields), 403, JSON.stringify(fields))
    }
  }
  t.equal(upstream.seen.length, 4)
})
