import t, { type Test } from 'tap'
import { endpoints } from '../../plugins/protocols/index.js'
import { startSimulator } from '../../plugins/standalone/simulator.js'

async function simulator (t: Test): Promise<{ url: string, credential: string }> {
  const started = await startSimulator({ eventDelayMs: 0 })
  t.teardown(async () => await started.close())
  return started
}

t.test('every endpoint of the table answers 200', async (t) => {
  const { url, credential } = await simulator(t)
  for (const { family, tail, action, method, id } of endpoints) {
    const path = tail.join('/').replace(/:(id|model)/, 'resp_1') + (action === null ? '' : `:${action}`)
    const [name, value] = family.upstreamHeader(credential)
    const response = await fetch(`${url}/${family.prefix}/${path}`, {
      method, headers: { [name]: value }, ...method === 'POST' && { body: '{"model":"m"}' },
    })
    t.equal(response.status, 200, id)
    t.ok(response.headers.get('x-request-id'), id)
    await response.json()
  }
})

t.test('the model is the one that was asked for, in path or body', async (t) => {
  const { url, credential } = await simulator(t)
  const post = async (path: string, headers: Record<string, string>, body?: string): Promise<unknown> => {
    return await (await fetch(url + path, { method: 'POST', headers, body: body ?? null })).json()
  }
  const bearer = { authorization: `Bearer ${credential}` }
  t.match(await post('/v1/chat/completions', bearer, '{"model":"a/b:c"}'), { model: 'a/b:c' })
  t.match(await post('/v1/chat/completions', bearer), { model: 'simulated' })
  t.match(await post('/v1beta/models/a/b:c:generateContent', { 'x-goog-api-key': credential }, '{}'), { modelVersion: 'a/b:c' })
  t.match(await post('/v1/responses/resp_7/cancel', bearer), { id: 'resp_7', status: 'cancelled' })
})

t.test('streams come event by event, framed as the protocol frames them', async (t) => {
  const { url, credential } = await simulator(t)
  const post = async (path: string, headers: Record<string, string>, body: string): Promise<[type: string | null, text: string]> => {
    const response = await fetch(url + path, { method: 'POST', headers, body })
    return [response.headers.get('content-type'), await response.text()]
  }
  const bearer = { authorization: `Bearer ${credential}` }
  const google = { 'x-goog-api-key': credential }
  const gemini = '/v1beta/models/m:streamGenerateContent'

  const [chatType, chat] = await post('/v1/chat/completions', bearer, '{"model":"m","stream":true}')
  t.equal(chatType, 'text/event-stream; charset=utf-8')
  t.match(chat, /^data: \{.*\}\n\n(data: \{.*\}\n\n)+data: \[DONE\]\n\n$/)
  const [, messages] = await post('/v1/messages', { 'x-api-key': credential }, '{"model":"m","stream":true}')
  t.match(messages, /^event: message_start\ndata: \{.*\}\n\n[^]*event: message_stop\ndata: \{"type":"message_stop"\}\n\n$/)
  const [sseType, sse] = await post(`${gemini}?alt=sse`, google, '{"contents":[]}')
  t.equal(sseType, 'text/event-stream; charset=utf-8')
  t.match(sse, /^(data: \{.*\}\n\n)+$/)
  const [arrayType, array] = await post(gemini, google, '{"contents":[]}')
  t.equal(arrayType, 'application/json; charset=utf-8')
  t.ok(JSON.parse(array).length > 5)
})

t.test('what it does not know is refused', async (t) => {
  const { url, credential } = await simulator(t)
  const status = async (path: string, headers: Record<string, string>): Promise<number> =>
    (await fetch(url + path, { method: 'POST', headers, body: '{}' })).status
  t.equal(await status('/v1/messages', { 'x-api-key': 'demo-messages' }), 401, 'a credential that is not its own')
  t.equal(await status('/v1/unknown', { 'x-api-key': credential }), 404)
  t.equal(await status('/favicon.ico', {}), 404)
})

t.test('a caller that leaves ends its stream alone', async (t) => {
  const { url, credential } = await startSimulator({ eventDelayMs: 20 }).then((started) => {
    t.teardown(async () => await started.close())
    return started
  })
  const ask = async (signal: AbortSignal | null): Promise<Response> => await fetch(`${url}/v1/chat/completions`, {
    method: 'POST', headers: { authorization: `Bearer ${credential}` }, body: '{"model":"m","stream":true}', signal,
  })
  const leave = new AbortController()
  const reader = (await ask(leave.signal)).body?.getReader()
  await reader?.read()
  leave.abort()
  await t.rejects(async () => await reader?.read())
  t.match(await (await ask(null)).text(), /\[DONE\]\n\n$/)
})
