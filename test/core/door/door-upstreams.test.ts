import type { IncomingMessage } from 'node:http'
import { createServer } from 'node:http2'
import httpProxy from '@fastify/http-proxy'
import Fastify from 'fastify'
import t from 'tap'
import llmGateway, { auth, paths, proxyOptions, type LlmGatewayOptions } from '../../../plugins/index.js'
import { everyProtocol, secret } from '../../helpers/gateway.js'
import { askOnce } from '../../helpers/wire.js'
import { bearer, chat, groupSecret, guarded, json, mount, mountSecret, startApp, startProvider } from './door-app.js'

const ownGroup = {
  upstreams: { own: { url: 'replaced', credential: groupSecret }, bare: { url: 'replaced' } },
  groups: { all: { protocols: everyProtocol, upstream: 'own' }, bare: { protocols: everyProtocol, upstream: 'bare' } },
  keys: [{ id: 'caller', group: 'all', secret }, { id: 'other', group: 'bare', secret: 'sk-bare' }],
  routes: false,
} as const

function ownOptions (url: string): LlmGatewayOptions {
  return {
    ...ownGroup,
    upstreams: { own: { url, credential: groupSecret }, bare: { url } },
    groups: { ...ownGroup.groups },
    keys: [...ownGroup.keys],
  }
}

const transports: Record<string, () => object> = {
  'an undici of the mount\'s own': () => ({ ...proxyOptions(), undici: { connections: 2 } }),
  'an http of the mount\'s own': () => ({ ...proxyOptions(), http: {} }),
  'an http2 of the mount\'s own': () => ({ ...proxyOptions(), http2: true }),
}

const otherMounts: Record<string, () => object> = {
  'a mount that nobody adapted': () => ({}),
  'a mount that nobody adapted and that parses bodies': () => ({ proxyPayloads: false }),
}

const mountReplies = [{}, { rewriteRequestHeaders: (_: unknown, given: object) => ({ ...given, authorization: `Bearer ${mountSecret}` }) }]

t.test('a request that goes elsewhere than its mount takes none of the mount\'s credentials along', async (t) => {
  const group = await startProvider(t)
  const mounted = await startProvider(t)
  const { url } = await startApp(t, async (app) => {
    await app.register(llmGateway, ownOptions(group.upstream.url))
    for (const prefix of ['/v1', '/v1beta']) {
      await app.register(httpProxy, {
        ...proxyOptions(),
        upstream: mounted.upstream.url,
        prefix,
        rewritePrefix: prefix,
        replyOptions: {
          queryString: () => `key=${mountSecret}`,
          rewriteRequestHeaders: (_, given) => ({
            ...given,
            'X-Some-Provider-Token': mountSecret,
            'user-agent': 'the mount',
            Authorization: `Bearer ${mountSecret}`,
            authorization: `Bearer ${mountSecret}`,
            'X-Api-Key': mountSecret,
            'api-key': mountSecret,
            'x-goog-api-key': mountSecret,
            x_goog_api_key: mountSecret,
            Cookie: mountSecret,
            'proxy-authorization': mountSecret,
          }),
        },
      })
    }
  })
  const calls = [
    ['/v1/chat/completions', chat, 'authorization', `Bearer ${groupSecret}`],
    ['/v1/messages', '{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}', 'x-api-key', groupSecret],
    ['/v1beta/models/m:generateContent', '{"contents":[{"parts":[{"text":"x"}]}]}', 'x-goog-api-key', groupSecret],
  ] as const
  for (const [path, body, name, expected] of calls) {
    for (const [key, credential] of [[secret, expected], ['sk-bare', undefined]] as const) {
      const carrier = path.includes('beta') ? `x-goog-api-key: ${key}` : `authorization: Bearer ${key}`
      const reply = await askOnce(url, [`POST ${path} HTTP/1.1`, 'host: h', carrier, json, 'anthropic-version: 2023-06-01'], body)
      t.equal(reply.status, 200, reply.body)
      const { headers, rawHeaders, url: seen } = await group.upstream.requests.next()
      t.match([headers[name], headers['user-agent'], seen], [credential, 'the mount', path])
      const sent = rawHeaders.join().replace(groupSecret, '')
      t.notMatch(sent, /canary|sk-/, `${path} ${key}`)
    }
  }
  t.strictSame(mounted.came(), [])
})

t.test('a group with an upstream of its own goes nowhere else', async (t) => {
  for (const [name, transport] of Object.entries({ ...transports, ...otherMounts })) {
    const firsts = name in transports ? ['mount'] as const : ['mount', 'gateway'] as const
    for (const [first, replyOptions] of firsts.flatMap((first) => mountReplies.map((options) => [first, options] as const))) {
      const group = await startProvider(t)
      const mounted = await startProvider(t)
      const streams: string[] = []
      const http2 = createServer((request) => { streams.push(request.url) })
      t.teardown(() => http2.close())
      await new Promise<void>((resolve) => http2.listen(0, '127.0.0.1', resolve))
      const { port } = Object(http2.address())
      const upstream = name.includes('http2') ? `http://127.0.0.1:${port}` : mounted.upstream.url
      const { app, url } = await startApp(t, async (app) => {
        if (first === 'gateway') await app.register(llmGateway, ownOptions(group.upstream.url))
        await mount(app, upstream, { prefix: '/v1', rewritePrefix: '/v1', replyOptions, ...transport() })
        if (first === 'mount') await app.register(llmGateway, ownOptions(group.upstream.url))
      })
      for (let turn = 0; turn < 2; turn += 1) {
        const reply = await askOnce(url, ['POST /v1/chat/completions HTTP/1.1', 'host: h', bearer, json], chat)
        t.match([reply.status, JSON.parse(reply.body)], [500, { error: { code: 'internal_error' } }], `${name}, ${first} first`)
      }
      t.strictSame([...mounted.came(), ...group.came(), ...streams], [], `${name}, ${first} first`)
      await app.close()
    }
  }
})

interface Sends {
  readonly from: (dest: string, options: object) => unknown
}

t.test('what a mount with proxyOptions() sends past their handler goes nowhere', async (t) => {
  const ways: ReadonlyArray<[name: string, options: object]> = [
    ['a handler of its own', { handler: (_: unknown, reply: Sends, dest: string, options: object) => reply.from(dest, options) }],
    ['a hook that sends', { preHandler: ({ raw }: { raw: IncomingMessage }, reply: Sends) => { reply.from(String(raw.url), {}) } }],
  ]
  for (const [name, options] of ways) {
    for (const own of [true, false]) {
      const group = await startProvider(t)
      const mounted = await startProvider(t)
      const { url } = await startApp(t, async (app) => {
        await mount(app, mounted.upstream.url, { ...proxyOptions(), prefix: '/v1', rewritePrefix: '/v1', ...options })
        await app.register(llmGateway, own ? ownOptions(group.upstream.url) : guarded)
      })
      t.equal((await askOnce(url, ['POST /v1/chat/completions HTTP/1.1', 'host: h', bearer, json], chat)).status, 502, name)
      t.strictSame([...mounted.came(), ...group.came()], [], `${name}: neither to the mount's upstream, nor the caller's key to anybody`)
    }
  }
  for (const prefix of ['/v1', undefined]) {
    const app = Fastify()
    t.teardown(() => app.close())
    await app.register(llmGateway, guarded)
    await mount(app, 'http://127.0.0.1:9', { ...prefix !== undefined && { prefix }, ...proxyOptions(), ...ways[0]?.[1] })
    const message = new RegExp(`mount at ${prefix ?? '/'}, which has a handler of its own`)
    await t.rejects(async () => await app.ready(), { code: 'LLM_GATEWAY_OPTION', message })
  }
})

t.test('a mount whose transport does not go to the upstreams of groups fails the start', async (t) => {
  const routed: LlmGatewayOptions = {
    ...ownOptions('http://127.0.0.1:9'),
    groups: { none: { protocols: [] }, all: { protocols: everyProtocol, routes: [{ models: ['m'], upstream: 'own' }] } },
    keys: [{ id: 'caller', group: 'all', secret }],
  }
  for (const [name, transport] of Object.entries(transports)) {
    for (const [options, at, fails] of [
      [ownOptions('http://127.0.0.1:9'), '/v1', true], [ownOptions('http://127.0.0.1:9'), undefined, true], [routed, '/v1', true],
      [guarded, '/v1', false],
    ] as const) {
      const app = Fastify()
      t.teardown(() => app.close())
      await app.register(llmGateway, options)
      await mount(app, 'http://127.0.0.1:9', { ...at !== undefined && { prefix: at }, ...transport() })
      const message = new RegExp(`mount at ${at ?? '/'}, which has an undici`)
      if (fails) await t.rejects(async () => await app.ready(), { code: 'LLM_GATEWAY_OPTION', message }, name)
      else await t.resolves(async () => await app.ready(), name)
    }
  }
})

t.test('what a group names and no plugin has goes nowhere, through a mount of the host\'s neither', async (t) => {
  for (const named of [{ upstream: 'nowhere' }, { routes: [{ models: ['m'], upstream: 'nowhere' }] }]) {
    for (const options of [proxyOptions(), {}]) {
      const { upstream, came } = await startProvider(t)
      const { url } = await startApp(t, async (app) => {
        await app.register(auth, {
          groups: { all: { protocols: everyProtocol, ...named } }, keys: [{ id: 'caller', group: 'all', secret }],
        })
        await app.register(paths)
        await mount(app, upstream.url, { ...options, prefix: '/v1', rewritePrefix: '/v1' })
      })
      t.equal((await askOnce(url, ['POST /v1/chat/completions HTTP/1.1', 'host: h', json, bearer], chat)).status, 500)
      t.strictSame(came(), [])
    }
  }
})
