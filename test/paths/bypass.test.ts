import { Agent, request } from 'node:http'
import { posix } from 'node:path'
import fc from 'fast-check'
import type { FastifyServerOptions } from 'fastify'
import t from 'tap'
import type { GroupOptions } from '../../plugins/index.js'
import { listen, secret } from '../helpers/gateway.js'
import { startHost, type HostOptions } from '../helpers/host.js'
import { startUpstream } from '../helpers/upstream.js'

const runs = Number(process.env.FUZZ_RUNS ?? 700)

const words = [
  'v1', 'v1beta', 'v1alpha', 'V1', 'v%31', '%76%31', '%2576%2531', 'v1%2f', 'v1\\', 'v1;x', ';', ';v1', 'v1%20', 'v1%00', 'v1%3b',
  '', '.', '..', '%2e', '%2e%2e', '.%2e', '%252e%252e', '..;', '%2e%2e;a=b', '..%2f', '..%5c', '%5c', '\\', '%2f', '%252f', '%c0%af',
  'chat', 'CHAT', 'chat%2fcompletions', 'chat\\completions', 'chat;a', 'completions', 'complet%69ons', 'completions%23', 'completions;',
  'completions%3fx', 'completions%2e',
  'messages', 'Messages', 'm%65ssages', 'messages%0a', 'responses', 'embeddings', 'images', 'generations', 'models', 'tunedModels',
  'm:generateContent', 'm%3AgenerateContent',
  'm%253AgenerateContent', 'a%2fb:countTokens', 'files', 'audio', 'transcriptions', 'completions', 'x', '%e2%84%aa', '\u00e9', '@', 'http:',
  'host', '%zz', '%',
]

const target = fc.tuple(
  fc.constantFrom('', '', '', '', 'http://h', 'HTTP://h:80', 'http://h\\v1', 'https://u@h', '/'),
  fc.array(fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...words) }, {
    weight: 1, arbitrary: fc.string({ unit: fc.constantFrom(...'v1/.%2feE;\\#?chat'), maxLength: 6 }),
  }), {
    minLength: 1, maxLength: 7,
  }),
  fc.constantFrom('', '', '/', '//', '?x=1', '?/v1/messages', '#', '#/v1', ';a', ';/../x', '?key=k')
).map(([start, path, end]) => `${start}/${path.join('/')}${end}`)

const seeds = [
  '/v1/files', '/v1/audio/transcriptions', '/v1', '/v1/', '/v1?x', '/v1;/chat/completions', '/V1/chat/completions', '/v1/Chat/Completions',
  '/%76%31/%252e%252e/x',
  '/v1/%252e%252e/x', '/%76%31/chat/completions', '/v1beta/openai/chat/completions', '//v1/chat/completions', '/v1//files',
  '/v1/chat/completions;x', '/v1/realtime',
  '/tunedModels/m:generateContent/x/m:generateContent', '/tunedModels/x/%20/m%3AgenerateContent;a',
  '/%2f/tunedModels/a%2fb:countTokens/m%3AgenerateContent?key=k',
  '/chat;a/completions;#/v1', '/chat;a/completions', '/;x/v1/chat/completions', '/x/..;/messages', '/%2e%2e;a/embeddings',
  '/x/%2e%2e/messages', '/%252e/messages', '/chat%2fcompletions',
]

const methods = ['POST', 'GET', 'DELETE', 'PUT', 'HEAD', 'OPTIONS', 'PATCH']

async function tryAll (send: (url: string) => Promise<void>): Promise<void> {
  for (const url of seeds) await send(url)
  const urls = fc.sample(target, runs)
  for (let i = 0; i < urls.length; i += 64) await Promise.all(urls.slice(i, i + 64).map(send))
}

async function fuzz (t: Parameters<typeof startHost>[0], options: HostOptions, headers: Record<string, string> = {}): Promise<string[]> {
  const upstream = await startUpstream()
  upstream.respond = () => ({ body: { ok: true } })
  const app = await startHost(t, upstream.url, options)
  const { port } = new URL(await listen(app))
  const agent = new Agent({ keepAlive: true, maxSockets: 16 })
  t.teardown(() => agent.destroy())
  t.teardown(() => upstream.close())
  let count = 0
  await tryAll(async (path) => {
    count += 1
    const method = methods[count % 3 === 0 ? count % methods.length : 0] ?? 'POST'
    const body = method === 'POST' ? '{}' : ''
    await new Promise<void>((resolve) => {
      const sent = request({
        port,
        host: '127.0.0.1',
        agent,
        path,
        method,
        headers: { 'content-type': 'application/json', 'content-length': body.length, ...headers },
      }, (reply) => {
        reply.resume().once('close', resolve)
      })
      // Bytes that are no HTTP are cut off.
      sent.once('error', () => resolve())
      sent.end(body)
    })
  })
  return upstream.seen.map(({ method, url }) => `${method} ${url}`)
}

const routers: Record<string, FastifyServerOptions> = {
  'a plain router': {},
  'a router that ignores case': { routerOptions: { caseSensitive: false } },
  'a router that ignores slashes': { routerOptions: { ignoreTrailingSlash: true, ignoreDuplicateSlashes: true } },
  'a router that cuts at semicolons': { useSemicolonDelimiter: true },
}

for (const [name, server] of Object.entries(routers)) {
  for (const adapted of [false, true]) {
    t.test(`behind ${name}, nothing without a key reaches ${adapted ? 'an adapted' : 'an untouched'} mount's upstream`, async (t) => {
      t.strictSame(await fuzz(t, { server, adapted }), [])
    })
  }
}

t.test('without the paths plugin nothing without a key gets through either', async (t) => {
  t.strictSame(await fuzz(t, { paths: false, server: { routerOptions: { caseSensitive: false } } }), [])
})

t.test('a key gets no further than its own endpoints', async (t) => {
  const groups: Record<string, GroupOptions> = { all: { protocols: ['embeddings'] } }
  const seen = await fuzz(t, { auth: { groups } }, { authorization: `Bearer ${secret}` })
  // HEAD asks for what GET has (RFC 9110 9.3.2).
  const strange = seen.filter((line) => !/^(?:POST \/v1\/embeddings|(?:GET|HEAD) \/v1\/models(?:\/[^?#;\\]*)?)(?:\?.*)?$/.test(line))
  t.strictSame(strange, [])
})

/** As the laxest upstream may read a path. */
function laxly (url: string): string {
  let path = url.replace(/[?#].*$/s, '')
  for (let i = 0; i < 4; i += 1) path = path.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)))
  return posix.normalize(path.replace(/\\/g, '/').replace(/;[^/]*/g, '').replace(/[?#].*$/s, ''))
    .replace(/[^\x21-\x7e\x80-\xff]/g, '')
    .replace(/\/+/g, '/')
}

t.test('what a mount of everything is asked beside the endpoints cannot be read as one of them', async (t) => {
  const seen = await fuzz(t, { mounts: ['/'] })
  t.ok(seen.length > 0)
  const endpoint =
    /^(?:\/v1(?:beta|alpha)?)*\/(?:chat\/completions|responses|embeddings|images\/generations|messages|(?:m|tunedM)odels\/.*:generateContent)\/?$/
  t.strictSame(seen.filter((line) => endpoint.test(laxly(line.slice(line.indexOf(' ') + 1)))), [])
})
