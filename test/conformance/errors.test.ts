/** Checks 61-65 of the checklist: failures of the upstream as the caller reads them. */
import t from 'tap'
import { main, plain, send } from './calls.js'
import { keys, startGateway, type Setup } from './gateway.js'

let gateway: Setup
t.before(async () => { gateway = await startGateway(t) })

const chat = plain('chat_completions')

t.test('check 61: 429 of the upstream passes with retry-after, retry-after-ms and its bytes', async (t) => {
  for (const call of main) {
    const body = '{"error": {"message":"slow  down"}}\n'
    const limits = {
      'retry-after': '7',
      'retry-after-ms': '6500',
      'x-should-retry': 'true',
      'x-ratelimit-remaining-requests': '0',
      'anthropic-ratelimit-tokens-remaining': '0',
    }
    gateway.upstream.queue({ status: 429, headers: limits, body })
    const reply = await send(gateway.origin, call)
    t.equal(reply.status, 429)
    t.match(reply.headers, limits)
    t.equal(reply.text, body)
  }
})

t.test('check 62: request ids of the upstream pass under both names, and errors of our own have one', async (t) => {
  for (const call of main) {
    for (const name of ['x-request-id', 'request-id']) {
      gateway.upstream.queue({ status: 400, headers: { [name]: 'up-1' }, body: {} })
      const { headers } = await send(gateway.origin, call)
      t.match(headers, { [name]: 'up-1' })
      t.ok(headers['x-request-id'] !== undefined && headers['request-id'] !== undefined, `${call.id} with ${name}`)
    }
    const own = await send(gateway.origin, call, { key: 'sk-wrong-4711' })
    t.ok(own.headers['x-request-id'] !== undefined && own.headers['request-id'] === own.headers['x-request-id'])
  }
})

t.test('check 63: 529 passes as it is', async (t) => {
  const body = '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}'
  gateway.upstream.queue({ status: 529, body })
  const reply = await send(gateway.origin, plain('messages'))
  t.match(reply, { status: 529, text: body })
})

t.test('check 64: an HTML page of a 502 becomes an envelope, without its text', async (t) => {
  for (const call of main) {
    gateway.upstream.queue({
      status: 502, headers: { 'content-type': 'text/html; charset=utf-8' }, body: '<html><h1>502</h1>upstream at 10.0.0.7:8443</html>',
    })
    const reply = await send(gateway.origin, call)
    t.equal(reply.status, 502)
    t.match(reply.json, { error: { message: 'The model provider answered with an error.' } }, call.id)
    t.notMatch(reply.text, /10\.0\.0\.7|html/)
  }
})

t.test('check 65: a spent balance is 403 with code insufficient_quota, or 429 by option, never to be retried', async (t) => {
  const spent = await send(gateway.origin, chat, { key: keys.spent })
  t.match(spent, {
    status: 403, json: { error: { type: 'insufficient_quota', code: 'insufficient_quota' } }, headers: { 'x-should-retry': 'false' },
  })
  for (const balanceStatus of [402, 429] as const) {
    const { origin, upstream } = await startGateway(t, { limits: { balanceStatus } })
    const reply = await send(origin, chat, { key: keys.spent })
    t.match(reply, { status: balanceStatus, json: { error: { code: 'insufficient_quota' } }, headers: { 'x-should-retry': 'false' } })
    t.equal(upstream.seen.length, 0)
  }
})

t.test('errors of the upstream pass byte for byte, whatever their status and shape', async (t) => {
  for (const call of main) {
    for (const status of [400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 501, 503, 504, 529]) {
      const body = `{"error": {"code":${status},  "odd" : "\\u00e9"}}\n`
      gateway.upstream.queue({ status, headers: { 'content-type': 'application/json;charset=UTF-8' }, body })
      const reply = await send(gateway.origin, call)
      t.match(reply, { status, text: body }, `${call.id} ${status}`)
      t.equal(reply.headers['content-type'], 'application/json;charset=UTF-8')
    }
  }
})

t.test('what a reply may not tell of the upstream, or to a server in front, stays behind; the rest of its headers passes', async (t) => {
  const orders = {
    'X-Accel-Redirect': '/metrics',
    'x-accel-expires': '3600',
    'x-accel-limit-rate': '1',
    'x-accel-charset': 'utf-7',
    'x-sendfile': '/etc/passwd',
    'x-lighttpd-send-file': '/etc/passwd',
    'x-reproxy-url': 'http://127.0.0.1/',
  }
  for (const call of main) {
    const kept = {
      'openai-processing-ms': '12', 'x-ratelimit-limit-tokens': '5', 'anthropic-organization-id': 'org', 'server-timing': 'a;dur=1',
    }
    gateway.upstream.queue({
      headers: { ...kept, 'set-cookie': ['a=1', 'b=2'], 'alt-svc': 'h3=":443"', connection: 'x-hop', 'x-hop': '1', ...orders }, body: {},
    })
    const { headers } = await send(gateway.origin, call)
    t.match(headers, kept)
    t.same(['set-cookie', 'alt-svc', ...Object.keys(orders)].filter((name) => headers[name.toLowerCase()] !== undefined), [], call.id)
  }
})
