import t from 'tap'
import { startUpstream } from '../helpers/upstream.js'
import { start, yaml } from './run.js'

const page = 'https://app.example'
const body = '{"model":"m","messages":[{"role":"user","content":"hi"}]}'
const names = 'authorization,content-type,x-stainless-lang'

/** As a browser asks before a page's call, and then calls. */
async function preflight (url: string, origin: string, method = 'POST'): Promise<Response> {
  return await fetch(url, {
    method: 'OPTIONS', headers: { origin, 'access-control-request-method': method, 'access-control-request-headers': names },
  })
}

t.test('pages of the origins that the file names may call, and read what they are told', async (t) => {
  const upstream = await startUpstream(t)
  const { origin } = await start(t, yaml(upstream.url, ['dev'], `cors: { origins: ["${page}", "http://localhost:5173"] }`))
  for (const path of ['/v1/chat/completions', '/v1/v1/chat/completions', '/v1/responses/resp_1', '/v1/nothing']) {
    for (const allowed of [page, 'http://localhost:5173']) {
      const reply = await preflight(origin + path, allowed)
      t.equal(reply.status, 204, path)
      t.match(Object.fromEntries(reply.headers), {
        'access-control-allow-origin': allowed,
        'access-control-allow-methods': 'GET, HEAD, POST, DELETE',
        'access-control-allow-headers': names,
        'access-control-max-age': '600',
        vary: /Origin/,
      })
    }
  }
  const call = async (headers: Record<string, string>): Promise<Response> => {
    return await fetch(`${origin}/v1/chat/completions`, {
      method: 'POST', headers: { origin: page, 'content-type': 'application/json', ...headers }, body,
    })
  }
  upstream.queue({
    headers: { 'access-control-allow-origin': 'https://upstream.example', 'access-control-allow-credentials': 'true' },
    fixture: 'chat_completions.json',
  })
  for (const [headers, status] of [[{ authorization: 'Bearer dev' }, 200], [{ authorization: 'Bearer wrong' }, 401], [{}, 401]] as const) {
    const reply = await call(headers)
    await reply.text()
    t.match([reply.status, reply.headers.get('access-control-allow-origin'), reply.headers.get('access-control-allow-credentials')], [
      status, page, null,
    ])
    t.equal(reply.headers.get('access-control-expose-headers'), '*')
  }
  t.equal(upstream.seen.length, 1, 'no preflight goes upstream')
})

t.test('other pages, and other paths than those of models, are not opened', async (t) => {
  const upstream = await startUpstream(t)
  const { origin } = await start(t, yaml(upstream.url, ['dev'], `cors: { origins: ["${page}"] }`))
  const other = await preflight(`${origin}/v1/chat/completions`, 'https://other.example')
  t.match([other.status, other.headers.get('access-control-allow-origin')], [204, null])
  for (const path of ['/metrics', '/health', '/']) {
    t.equal((await preflight(origin + path, page, 'GET')).headers.get('access-control-allow-origin'), null, path)
    const read = await fetch(origin + path, { headers: { origin: page } })
    t.match([read.status, read.headers.get('access-control-allow-origin')], [200, null], path)
    await read.text()
  }
})

t.test('what an upstream allows to any page is not passed on where the file names those that may', async (t) => {
  const upstream = await startUpstream(t)
  const open = { headers: { 'access-control-allow-origin': '*' }, fixture: 'chat_completions.json' }
  const { origin } = await start(t, yaml(upstream.url, ['dev'], `cors: { origins: ["${page}"] }`))
  for (const from of ['https://other.example', 'null']) {
    upstream.queue(open)
    const headers = { authorization: 'Bearer dev', 'content-type': 'application/json', origin: from }
    const reply = await fetch(`${origin}/v1/chat/completions`, { method: 'POST', headers, body })
    await reply.text()
    t.match([reply.status, reply.headers.get('access-control-allow-origin')], [200, null], from)
  }
  const none = await start(t, yaml(upstream.url, ['dev']))
  upstream.queue(open)
  const headers = { authorization: 'Bearer dev', 'content-type': 'application/json' }
  const reply = await fetch(`${none.origin}/v1/chat/completions`, { method: 'POST', headers, body })
  await reply.text()
  t.equal(reply.headers.get('access-control-allow-origin'), '*', 'where it says nothing of pages, a reply passes as it is')
})

t.test('any page, where the file says so, and none without it', async (t) => {
  const upstream = await startUpstream(t)
  const any = await start(t, yaml(upstream.url, ['dev'], 'cors: { origins: ["*"] }'))
  t.equal((await preflight(`${any.origin}/v1/chat/completions`, page)).headers.get('access-control-allow-origin'), '*')
  const none = await start(t, yaml(upstream.url, ['dev']))
  const reply = await preflight(`${none.origin}/v1/chat/completions`, page)
  t.match([reply.status, reply.headers.get('access-control-allow-origin')], [204, null])
  t.equal((await fetch(`${none.origin}/v1/chat/completions`, { method: 'OPTIONS' })).status, 405, 'no preflight')
})

t.test('an origin with a path is none', async (t) => {
  for (const origins of ['["https://app.example/"]', '[]', '["app.example"]']) {
    await t.rejects(start(t, yaml('http://127.0.0.1:9', ['dev'], `cors: { origins: ${origins} }`)), { message: /cors\.origins/ }, origins)
  }
})
