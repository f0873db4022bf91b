import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { dropCredentials } from '../../plugins/core/door/carriers.js'
import { secret } from '../helpers/gateway.js'
import { hostSecret, startHost } from '../helpers/host.js'
import { startUpstream } from '../helpers/upstream.js'
import { upstreams } from '../../plugins/upstreams/index.js'

t.test('no carrier of a caller reaches a mount of the host, also without the paths plugin', async (t) => {
  const upstream = await startUpstream(t)
  for (const adapted of [false, true]) {
    const app = await startHost(t, upstream.url, { paths: false, adapted })
    const carriers = {
      cookie: 'canary',
      'x-api-key': 'canary',
      'api-key': 'canary',
      x_api_key: 'canary',
      'proxy-authorization': 'canary',
      'x-goog-api-key': secret,
      connection: 'authorization, x-goog-api-key',
    }
    const reply = await app.inject({
      method: 'POST',
      url: `/v1beta/models/m:generateContent?alt=json&key=${secret}`,
      headers: { ...carriers, 'content-type': 'application/json' },
      payload: '{}',
    })
    t.equal(reply.statusCode, 200)
    const seen = await upstream.requests.next()
    t.equal(seen.url, '/v1beta/models/m:generateContent?alt=json')
    t.notMatch(seen.rawHeaders.join(), new RegExp(`canary|${secret}`))
    t.equal(seen.headers.authorization, `Bearer ${hostSecret}`)
  }
})

t.test('what a mount gets holds neither a carrier nor a list of headers that the mount is to lose', async (t) => {
  const kept = { accept: '*/*', x_note: 'c' }
  const headers = {
    ...kept,
    authorization: 'a',
    x_goog_api_key: 'b',
    connection: 'authorization',
    expect: '100-continue',
    upgrade: 'h2c',
    'http2-settings': 'AAMAAABk',
  }
  dropCredentials(headers)
  t.strictSame({ ...headers }, kept)
})

t.test('what a mount serves beside the endpoints is refused, or left to it', async (t) => {
  const upstream = await startUpstream(t)
  upstream.respond = () => ({ body: { ok: true } })
  const status = async (app: FastifyInstance, url: string): Promise<number> => (await app.inject({ method: 'GET', url })).statusCode
  const strict = await startHost(t, upstream.url, { before: (app) => { app.get('/v1/users/:id', async () => ({})) } })
  t.strictSame(
    await Promise.all(['/v1/files', '/v1/files', '/v1', '/v1/', '/v1/users/7', '/v1alpha/x'].map((url) => status(strict, url))),
    [404, 404, 404, 404, 200, 404]
  )
  t.equal(upstream.seen.length, 0)
  t.equal(await status(await startHost(t, upstream.url, { auth: { unknown: 'leave' } }), '/v1/files'), 200)
  const beside = await startHost(t, upstream.url, { mounts: ['/'], before: (app) => { app.get('/:version/*', async () => ({})) } })
  t.equal(await status(beside, '/v1/users'), 404, 'a parameter may stand for the version')
  const own = await startHost(t, upstream.url, { mounts: ['/'] })
  const { forward } = await import('../../plugins/forward/index.js')
  await own.register(upstreams, { upstreams: { main: { url: upstream.url } } })
  await own.register(forward)
  t.equal(await status(own, '/v1/users'), 200, 'model requests have routes of their own: the mount is the host\'s')
})

t.test('nothing of a key stays in the address of what an adapted mount does not send', async (t) => {
  const upstream = await startUpstream(t)
  const seen: unknown[] = []
  const app = await startHost(t, upstream.url, {
    mounts: ['/'],
    adapted: true,
    before: (app) => { app.addHook('onResponse', async ({ raw, url, query }) => { seen.push([raw.url, url, { ...Object(query) }]) }) },
  })
  for (const headers of [{}, { connection: 'upgrade', upgrade: 'websocket' }]) {
    t.ok((await app.inject({ url: '/users?a=1&key=canary', headers })).statusCode >= 400)
    t.strictSame(seen.splice(0), [['/users?a=1', '/users?a=1', { a: '1' }]])
  }
  t.strictSame(upstream.seen, [])
})

t.test('where nobody is asked for a key, a mount passes what is none of ours', async (t) => {
  const upstream = await startUpstream(t)
  upstream.respond = () => ({ body: { ok: true } })
  for (const [adapted, statuses] of [[false, [200, 200, 200]], [true, [200, 404, 200]]] as const) {
    const app = await startHost(t, upstream.url, { mounts: ['/'], adapted, auth: false })
    const replies = await Promise.all(['/users', '/v1/files', '/v1/models'].map(async (url) => await app.inject({ url })))
    t.strictSame(replies.map(({ statusCode }) => statusCode), statuses)
  }
})

t.test('a mount that relies on the gateway and would ask nobody for a key fails the start', async (t) => {
  const cases: [prefix: string, mount: string, starts: boolean][] = [
    ['', '/v1', true],
    ['', '/v1/files', true],
    ['', '/', true],
    ['', '/:version', true],
    ['', '/openai', false],
    ['', '/:tenant/v1', false],
    ['/llm', '/llm', true],
    ['/llm', '/llm/v1beta', true],
    ['/llm', '/', true],
    ['/llm', '/v1', false],
  ]
  for (const [prefix, mount, starts] of cases) {
    const app = await startHost(t, 'http://127.0.0.1:9', { mounts: [mount], paths: { prefix }, adapted: true })
    const ready = async (): Promise<unknown> => await app.ready()
    if (starts) await t.resolves(ready, `${mount} with prefix ${prefix}`)
    else {
      await t.rejects(
        ready, { code: 'LLM_GATEWAY_OPTION', message: `option prefix must be what stands before the version below ${mount}/*` }, mount
      )
    }
    const plain = await startHost(t, 'http://127.0.0.1:9', { mounts: [mount], paths: { prefix } })
    await t.resolves(async () => await plain.ready(), 'a mount as it stands is the host\'s own business')
  }
})
