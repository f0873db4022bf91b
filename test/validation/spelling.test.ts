import httpProxy from '@fastify/http-proxy'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import llmGateway, { proxyOptions } from '../../plugins/index.js'
import { everyProtocol, gatewayOptions, secret } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'

const groups = { all: { protocols: everyProtocol, models: ['small'] } }

async function apps (t: Test, upstream: string): Promise<Record<string, FastifyInstance>> {
  const own = Fastify()
  const adapted = Fastify()
  const beside = Fastify()
  for (const app of [own, adapted, beside]) t.teardown(() => app.close())
  await own.register(llmGateway, gatewayOptions(upstream, { groups }))
  for (const app of [adapted, beside]) {
    await app.register(llmGateway, { groups, keys: [{ id: 'caller', group: 'all', secret }], routes: false })
    await app.register(httpProxy, { upstream, prefix: '/v1', rewritePrefix: '/v1', ...app === adapted ? proxyOptions() : {} })
    await app.register(httpProxy, { upstream, prefix: '/v1beta', rewritePrefix: '/v1beta', ...app === adapted ? proxyOptions() : {} })
  }
  return { 'own routes': own, 'an adapted mount': adapted, 'a plain mount': beside }
}

const headers = {
  authorization: `Bearer ${secret}`, 'x-goog-api-key': secret, 'anthropic-version': '2023-06-01', 'content-type': 'application/json',
}
const chat = '"messages":[{"role":"user","content":"x"}]'
const requests = (model: string): string => `{"requests":[{"model":"models/small",${model}"content":{"parts":[{"text":"x"}]}}]}`
const settings = (given: string): string => `{"contents":[{"parts":[{"text":"x"}]}],${given}}`

t.test('a body that some servers read in another way than it is checked here is refused', async (t) => {
  const upstream = await startUpstream(t)
  const cases: ReadonlyArray<readonly [path: string, payload: string, status: number]> = [
    ['/v1/chat/completions', `{"model":"small","Model":"big",${chat}}`, 400],
    ['/v1/chat/completions', `{"MODEL":"big","model":"small",${chat}}`, 400],
    ['/v1/chat/completions', `{"model":"small","M\\u004fDEL":"big",${chat}}`, 400],
    ['/v1/chat/completions', `{"model":"small","Stream":true,${chat}}`, 400],
    ['/v1/chat/completions', `{"model":"small","\\u017ftream":true,${chat}}`, 400],
    ['/v1/chat/completions', `{"model":"small","stream":true,"Stream_Options":{"include_usage":false},${chat}}`, 400],
    ['/v1/chat/completions', `{"model":"small","Fallbac\\u212as":["big"],${chat}}`, 400],
    ['/v1/chat/completions', `{"model":"small","max_tokens":1,"Max_Tokens":100000,${chat}}`, 400],
    ['/v1/chat/completions', `{"model":"small","fallbacks":[{"model":"small","Model":"big"}],${chat}}`, 403],
    ['/v1/chat/completions', `{"model":"small","Service_Tier":"priority",${chat}}`, 400],
    ['/v1/chat/completions', `{"model":"small","Web_Search_Options":{},${chat}}`, 400],
    ['/v1/messages', `{"model":"small","max_tokens":1,"Speed":"fast",${chat}}`, 400],
    ['/v1/messages', `{"model":"small","max_tokens":1,"Inference_Geo":"us",${chat}}`, 400],
    ['/v1beta/models/small:generateContent', '{"contents":[{"parts":[{"text":"x"}]}],"servicetier":"priority"}', 400],
    ['/v1beta/models/small:generateContent', '{"contents":[{"parts":[{"text":"x"}]}],"Tools":[{"googleSearch":{}}]}', 400],
    ['/v1beta/models/small:generateContent', settings('"generationConfig":{"maxOutputTokens":1,"MaxOutputTokens":65536}'), 400],
    ['/v1beta/models/small:generateContent', settings('"generation_config":{"Candidate_Count":8}'), 400],
    ['/v1/responses', '{"model":"small","input":"x","max_tool_calls":1,"Max_Tool_Calls":99,"tools":[{"type":"web_search"}]}', 400],
    ['/v1/responses', '{"model":"small","input":"x","Background":true}', 400],
    ['/v1/embeddings', '{"model":"small","input":"x","Model":"big"}', 400],
    ['/v1/embeddings', '{"model":"small","input":"x","fallbacks":["big"]}', 403],
    ['/v1/images/generations', '{"model":"small","prompt":"x","models":["big"]}', 403],
    ['/v1beta/models/small:batchEmbedContents', requests('"Model":"models/big",'), 403],
  ]
  for (const [place, app] of Object.entries(await apps(t, upstream.url))) {
    for (const [url, payload, status] of cases) {
      const reply = await app.inject({ method: 'POST', url, headers, payload })
      t.equal(reply.statusCode, status, `${place}: ${payload} ${reply.body}`)
      if (status === 400) t.match(reply.json().error, { message: /^The key ".+" could be read as "[a-zA-Z_]+": spell it so\.$/ })
    }
  }
  t.equal(upstream.seen.length, 0)
})

t.test('a model named twice in an inner object is refused: each server takes another of the two', async (t) => {
  const upstream = await startUpstream(t)
  const cases: ReadonlyArray<readonly [path: string, payload: string]> = [
    ['/v1/chat/completions', `{"model":"small","fallbacks":[{"model":"big","model":"small"}],${chat}}`],
    ['/v1/chat/completions', `{"model":"small","fallbacks":[{"model":"big","mod\\u0065l":null}],${chat}}`],
    ['/v1beta/models/small:batchEmbedContents', requests('"model":"models/big","model":"models/small",')],
    ['/v1beta/models/small:countTokens', '{"generateContentRequest":{"model":"models/big","model":"models/small","contents":[]}}'],
  ]
  for (const [place, app] of Object.entries(await apps(t, upstream.url))) {
    for (const [url, payload] of cases) {
      const reply = await app.inject({ method: 'POST', url, headers, payload })
      t.equal(reply.statusCode, 400, `${place}: ${payload} ${reply.body}`)
      t.match(reply.json().error, { message: /an object in it has a key twice/ })
    }
  }
  t.equal(upstream.seen.length, 0)
})

t.test('other keys pass, however they are spelled', async (t) => {
  const upstream = await startUpstream(t)
  for (const [place, app] of Object.entries(await apps(t, upstream.url))) {
    const one = await app.inject({
      method: 'POST', url: '/v1/chat/completions', headers, payload: `{"model":"small","ModelX":1,"User":"x","x-y":1,${chat}}`,
    })
    t.equal(one.statusCode, 200, `${place}: ${one.body}`)
    const two = await app.inject({
      method: 'POST',
      url: '/v1beta/models/small:generateContent',
      headers,
      payload: '{"contents":[{"parts":[{"text":"x"}]}],"generationConfig":{"maxOutputTokens":5},"systemInstruction":{"parts":[]}}',
    })
    t.equal(two.statusCode, 200, `${place}: ${two.body}`)
  }
})

t.test('a form that spells the model in another way is refused', async (t) => {
  const upstream = await startUpstream(t)
  const part = (name: string, value: string): string => `--X1\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
  for (const [place, app] of Object.entries(await apps(t, upstream.url))) {
    for (const name of ['Model', 'model[]']) {
      const reply = await app.inject({
        method: 'POST',
        url: '/v1/images/edits',
        headers: { ...headers, 'content-type': 'multipart/form-data; boundary=X1' },
        payload: `${part('model', 'small')}${part(name, 'big')}${part('prompt', 'x')}--X1--\r\n`,
      })
      t.match([reply.statusCode, reply.json().error.message], [400, /could be read as model/], `${place}: ${name}`)
    }
  }
  t.equal(upstream.seen.length, 0)
})

t.test('usage is asked for under its own name alone', async (t) => {
  const upstream = await startUpstream(t)
  const cases = ['"include_usage":true,"INCLUDE_USAGE":false', '"Include_Usage":false,"include_usage":true', '"Include_usage":true']
  for (const [place, app] of Object.entries(await apps(t, upstream.url))) {
    for (const options of cases) {
      const payload = `{"model":"small","stream":true,"stream_options":{"a":1,${options}},${chat}}`
      const reply = await app.inject({ method: 'POST', url: '/v1/chat/completions', headers, payload })
      t.equal(reply.statusCode, 200, `${place}: ${reply.body}`)
      t.strictSame(upstream.seen.at(-1)?.json['stream_options'], { a: 1, include_usage: true }, `${place}: ${options}`)
    }
  }
})
