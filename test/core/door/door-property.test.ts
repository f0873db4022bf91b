/**
 * Any method x any path x upgrade or not x any key, over every kind of mount: without a valid key nothing reaches an upstream;
 * with one, it reaches the upstream of its group with exactly that credential, and no other secret stands anywhere in what was sent.
 */
import { connect } from 'node:http2'
import httpProxy from '@fastify/http-proxy'
import fc from 'fast-check'
import Fastify, { type FastifyInstance, type FastifyServerOptions } from 'fastify'
import t, { type Test } from 'tap'
import llmGateway, {
  auth, createRewriteUrl, errors, paths, proxyOptions, validation, type LlmGatewayOptions,
} from '../../../plugins/index.js'
import { everyProtocol, listen } from '../../helpers/gateway.js'
import { startUpstream, type Upstream } from '../../helpers/upstream.js'
import { Wire } from '../../helpers/wire.js'

const runs = Number(process.env['FUZZ_RUNS'] ?? 100)

const secrets = { own: 'canary-own-upstream', mount: 'canary-mounts-upstream', other: 'canary-other-upstream' }
const keys = { own: 'canary-caller-own', mount: 'canary-caller-mount', other: 'canary-caller-other', wrong: 'canary-caller-wrong' }
type KeyName = keyof typeof keys

interface Providers {
  /** By the group whose requests they are to get. */
  readonly by: Readonly<Record<'own' | 'mount' | 'other', Upstream>>
  /** What came since it was asked the last time, each as all of its text. */
  readonly came: () => Array<{ readonly at: string, readonly text: string }>
}

async function startProviders (t: Test): Promise<Providers> {
  const by = { own: await startUpstream(t), mount: await startUpstream(t), other: await startUpstream(t) }
  const seen: Array<{ at: string, text: string }> = []
  for (const [at, upstream] of Object.entries(by)) {
    upstream.respond = (request) => {
      seen.push({ at, text: [request.method, request.url, ...request.rawHeaders, request.body.toString()].join('\n') })
      return { body: { ok: true } }
    }
    upstream.server.on('upgrade', (request, socket) => {
      seen.push({ at, text: [request.method, request.url, ...request.rawHeaders].join('\n') })
      socket.destroy()
    })
  }
  return { by, came: () => seen.splice(0) }
}

interface Place {
  readonly build: (app: FastifyInstance, by: Providers['by']) => Promise<void>
  readonly server?: FastifyServerOptions
  readonly http2?: true
  /** Where a request of each group goes; the groups of the others have no business there, and are refused. */
  readonly goes: Partial<Record<KeyName, 'own' | 'mount' | 'other'>>
}

function options ({ own, other }: Providers['by'], more: Partial<LlmGatewayOptions> = {}): LlmGatewayOptions {
  return {
    upstreams: { own: { url: own.url, credential: secrets.own }, other: { url: other.url, credential: secrets.other } },
    groups: {
      own: { protocols: everyProtocol, upstream: 'own' },
      mount: { protocols: everyProtocol },
      other: { protocols: everyProtocol, upstream: 'other' },
    },
    keys: (['own', 'mount', 'other'] as const).map((id) => ({ id, group: id, secret: keys[id] })),
    routes: false,
    metrics: false,
    log: false,
    ...more,
  }
}

/** The mounts of a host, with the credential of its own provider, as documents show it. */
async function mounts (app: FastifyInstance, { mount }: Providers['by'], prefixes: readonly string[], more: () => object): Promise<void> {
  for (const prefix of prefixes) {
    const headers = {
      authorization: `Bearer ${secrets.mount}`, 'x-api-key': secrets.mount, 'x-goog-api-key': secrets.mount, 'x-any': secrets.mount,
    }
    const rewriteRequestHeaders = (_: unknown, given: object): object => ({ ...given, ...headers })
    const all: { upstream: string } = Object.assign(
      { upstream: mount.url, prefix, rewritePrefix: prefix, replyOptions: { rewriteRequestHeaders }, wsClientOptions: { headers } }, more()
    )
    await app.register(httpProxy, all)
  }
}

const versions = ['/v1', '/v1beta']
const everywhere = { own: 'own', mount: 'mount', other: 'other' } as const
const adapted = (): object => proxyOptions()
const sockets = (): object => ({ ...proxyOptions(), websocket: true })
const plain = (): object => ({})

const places: Readonly<Record<string, Place>> = {
  'our own routes': {
    build: async (app, by) => {
      await app.register(llmGateway, options(by, {
        routes: true,
        groups: {
          own: { protocols: everyProtocol, upstream: 'own' },
          mount: { protocols: everyProtocol, upstream: 'own' },
          other: { protocols: everyProtocol, upstream: 'other' },
        },
      }))
    },
    goes: { own: 'own', mount: 'own', other: 'other' },
  },
  'our own routes below a prefix, over HTTP/2': {
    build: async (app, by) => {
      await app.register(llmGateway, options(by, {
        prefix: '/llm',
        routes: true,
        groups: {
          own: { protocols: everyProtocol, upstream: 'own' },
          mount: { protocols: [], upstream: 'own' },
          other: { protocols: everyProtocol, upstream: 'other' },
        },
      }))
    },
    goes: { own: 'own', other: 'other' },
    http2: true,
  },
  'adapted mounts': {
    build: async (app, by) => { await app.register(llmGateway, options(by)); await mounts(app, by, versions, adapted) }, goes: everywhere,
  },
  'adapted mounts of an HTTP/2 host': {
    build: async (app, by) => { await app.register(llmGateway, options(by)); await mounts(app, by, versions, adapted) },
    goes: everywhere,
    http2: true,
  },
  'adapted mounts that are older': {
    build: async (app, by) => { await mounts(app, by, versions, adapted); await app.register(llmGateway, options(by)) }, goes: everywhere,
  },
  'adapted mounts that serve sockets': {
    build: async (app, by) => { await app.register(llmGateway, options(by)); await mounts(app, by, versions, sockets) }, goes: everywhere,
  },
  'an adapted mount of everything, that serves sockets': {
    build: async (app, by) => { await app.register(llmGateway, options(by)); await mounts(app, by, ['/'], sockets) }, goes: everywhere,
  },
  'an adapted mount below a prefix, and a rewriteUrl': {
    build: async (app, by) => {
      await app.register(
        llmGateway, options(by, { prefix: '/llm' })
      ); await mounts(app, by, ['/llm'], () => ({ ...adapted(), rewritePrefix: '' }))
    },
    server: { rewriteUrl: createRewriteUrl({ prefix: '/llm' }) },
    goes: everywhere,
  },
  'adapted mounts of a router that is lax': {
    build: async (app, by) => { await app.register(llmGateway, options(by)); await mounts(app, by, versions, sockets) },
    server: {
      routerOptions: { caseSensitive: false, ignoreTrailingSlash: true, ignoreDuplicateSlashes: true }, useSemicolonDelimiter: true,
    },
    goes: everywhere,
  },
  'adapted mounts in a scope of the gateway\'s': {
    build: async (app, by) => {
      await app.register(async (scope) => { await scope.register(llmGateway, options(by)); await mounts(scope, by, versions, adapted) })
    },
    goes: everywhere,
  },
  'mounts that nobody adapted': {
    build: async (app, by) => { await app.register(llmGateway, options(by)); await mounts(app, by, versions, plain) },
    goes: { mount: 'mount' },
  },
  'mounts that nobody adapted, older, with sockets': {
    build: async (app, by) => { await mounts(app, by, versions, () => ({ websocket: true })); await app.register(llmGateway, options(by)) },
    goes: { mount: 'mount' },
  },
  'mounts that nobody adapted, beside single plugins': {
    build: async (app, by) => {
      const { groups, keys: given = [] } = options(by)
      await app.register(paths)
      await app.register(errors)
      await app.register(auth, { groups, keys: given })
      await app.register(validation)
      await mounts(app, by, versions, plain)
    },
    goes: { mount: 'mount' },
  },
  'auth alone beside a mount that parses bodies': {
    build: async (app, by) => {
      const { groups, keys: given = [] } = options(by); await app.register(auth, {
        groups, keys: given,
      }); await mounts(app, by, versions, () => ({ proxyPayloads: false }))
    },
    goes: { mount: 'mount' },
  },
}

const words = [
  'v1', 'v1beta', 'V1', 'v%31', 'llm', '', '.', '..', '%2e', '%2e%2e', '%2f', ';x', '%00', '\\', 'chat', 'completions',
  'chat%2fcompletions', 'messages', 'count_tokens', 'responses', 'resp_1', 'models', 'tunedModels',
  'm:generateContent', 'm%3AcountTokens', 'embeddings', 'images', 'generations', 'files', 'realtime', 'ws', 'anything',
]
const known = [
  '/v1/chat/completions', '/v1/v1/chat/completions', '/chat/completions', '/v1/messages', '/v1/responses', '/v1/responses/resp_1',
  '/v1/embeddings', '/v1/images/generations', '/v1/models', '/v1beta/models',
  '/v1beta/models/m:generateContent', '/v1/v1beta/models/m:streamGenerateContent', '/v1beta/models/m:countTokens', '/v1/realtime',
  '/v1/files', '/v1/', '/v1', '/', '/v1/%2e/realtime', '//v1//messages', '/realtime',
]
const anyPath = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...known) },
  { weight: 1, arbitrary: fc.array(fc.constantFrom(...words), { minLength: 1, maxLength: 5 }).map((parts) => `/${parts.join('/')}`) },
  {
    weight: 1,
    arbitrary: fc.tuple(fc.constantFrom('http://h', 'http://u@h:80', '*', 'h'), fc.constantFrom(...known)).map((parts) => parts.join('')),
  }
)
const extras = [
  '', '?a=b', '?alt=sse', '?beta=true', '?access_token=canary-extra', '?KEY=canary-extra', '?$key=canary-extra',
  '?a=b;key[]=canary-extra&c', '?api_key=canary-extra', '#x', '?$httpHeaders=canary-extra', '??key=canary-extra', '?%3Bkey=canary-extra',
  '?a&[key]=canary-extra', '?%u006bey=canary-extra',
]
const carriers = [
  'authorization: Bearer', 'authorization: bearer  ', 'x-api-key:', 'x-goog-api-key:', 'api-key:', 'cookie: key=',
  'proxy-authorization: Bearer', 'x_api_key:', '?key=',
] as const
const noise = [
  'x-api-key: canary-extra', 'cookie: canary-extra', 'connection: authorization, x-api-key', 'api-key: canary-extra',
  'x-auth-token: canary-extra', 'x-http-method-override: DELETE', 'expect: 100-continue',
]
const upgrades = {
  none: [],
  socket: ['connection: Upgrade', 'upgrade: websocket', 'sec-websocket-version: 13', 'sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA=='],
  odd: [
    'connection: keep-alive, upgrade', 'upgrade: WebSocket, h2c', 'sec-websocket-version: 13',
    'sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==',
  ],
  h2c: ['connection: Upgrade, HTTP2-Settings', 'upgrade: h2c', 'http2-settings: AAMAAABkAAQAAP__'],
} as const

const everyField = {
  model: 'm',
  messages: [{ role: 'user', content: 'hi' }],
  max_tokens: 5,
  input: 'x',
  prompt: 'x',
  contents: [{ parts: [{ text: 'x' }] }],
  content: { parts: [{ text: 'x' }] },
  requests: [{ model: 'models/m', content: { parts: [{ text: 'x' }] } }],
}
const body = JSON.stringify(everyField)

interface Call {
  readonly method: string
  readonly path: string
  readonly extra: string
  readonly upgrade: keyof typeof upgrades
  readonly key: KeyName | 'none'
  readonly carrier: typeof carriers[number]
  readonly noise: readonly string[]
  readonly preflight: boolean
}

const wild: fc.Arbitrary<Call> = fc.record({
  method: fc.oneof({ weight: 3, arbitrary: fc.constantFrom('POST', 'GET') }, {
    weight: 1, arbitrary: fc.constantFrom('DELETE', 'PUT', 'PATCH', 'HEAD', 'OPTIONS', 'TRACE', 'PROPFIND'),
  }),
  path: anyPath,
  extra: fc.constantFrom(...extras),
  upgrade: fc.oneof({ weight: 3, arbitrary: fc.constant('none' as const) }, {
    weight: 2, arbitrary: fc.constantFrom('socket' as const, 'odd' as const, 'h2c' as const),
  }),
  key: fc.oneof({ weight: 2, arbitrary: fc.constantFrom('own' as const, 'mount' as const, 'other' as const) }, {
    weight: 1, arbitrary: fc.constantFrom('none' as const, 'wrong' as const),
  }),
  carrier: fc.constantFrom(...carriers),
  noise: fc.uniqueArray(fc.constantFrom(...noise), { maxLength: 2 }),
  preflight: fc.boolean(),
})

/** What a client sends. */
const usual: fc.Arbitrary<Call> = fc.record({
  method: fc.constant('POST'),
  path: fc.constantFrom('/v1/chat/completions', '/v1/v1/messages', '/v1beta/models/m:generateContent', '/v1/embeddings', '/v1/responses'),
  extra: fc.constantFrom(...extras),
  upgrade: fc.constantFrom('none' as const, 'none' as const, 'h2c' as const),
  key: fc.constantFrom('own' as const, 'mount' as const, 'other' as const),
  carrier: fc.constantFrom('authorization: Bearer' as const, 'x-goog-api-key:' as const, '?key=' as const),
  noise: fc.uniqueArray(fc.constantFrom('cookie: canary-extra', 'api-key: canary-extra', 'x-auth-token: canary-extra'), { maxLength: 2 }),
  preflight: fc.constant(false),
})

const call = fc.oneof({ weight: 2, arbitrary: wild }, { weight: 1, arbitrary: usual })

/** One of each caller, in every run: what passes is not left to chance. */
const ordinary = (['own', 'mount', 'other'] as const).map((key): [Call] => [{
  method: 'POST',
  path: '/v1/chat/completions',
  extra: '',
  upgrade: 'none',
  key,
  carrier: 'authorization: Bearer',
  noise: [],
  preflight: false,
}])

/** Name, value. Two lines of `connection` are one list. */
function headersOf ({ carrier, key, upgrade, preflight, method, noise: more }: Call): string[] {
  const given = key === 'none' || carrier === '?key=' ? [] : [`${carrier} ${keys[key]}`]
  const asked = preflight && method === 'OPTIONS' ? ['origin: https://page.example', 'access-control-request-method: POST'] : []
  return ['content-type: application/json', 'anthropic-version: 2023-06-01', ...given, ...asked, ...upgrades[upgrade], ...more]
}

function targetOf ({ path, extra, key, carrier }: Call): string {
  if (carrier !== '?key=' || key === 'none') return path + extra
  return path + (extra.startsWith('?') ? `${extra}&key=${keys[key]}` : `?key=${keys[key]}`)
}

async function sendPlain (url: string, made: Call): Promise<void> {
  const wire = new Wire(url)
  const length = made.method === 'POST' ? body.length : 0
  wire.send([
    `${made.method} ${targetOf(made)} HTTP/1.1`, 'host: h', ...headersOf(made), `content-length: ${length}`, '', length > 0 ? body : '',
  ].join('\r\n'))
  const late = new Promise<string>((resolve) => { setTimeout(resolve, 10_000, 'late').unref() })
  const replied = await Promise.race([replyOn(wire, made.method).then(() => 'done', () => 'done'), late])
  wire.destroy()
  if (replied === 'late') throw new Error('no reply')
}

async function replyOn (wire: Wire, method: string): Promise<void> {
  // A reply to HEAD has a length and no body.
  if (method === 'HEAD') {
    while (wire.unread === 0 && !wire.socket.destroyed) await new Promise((resolve) => setTimeout(resolve, 1))
    return
  }
  const { status } = await wire.reply()
  if (status === 100) await wire.reply()
}

async function sendOverHttp2 (url: string, made: Call): Promise<void> {
  const session = connect(url)
  session.on('error', () => {})
  const headers: Record<string, string> = {}
  for (const line of headersOf(made)) {
    const [name = ''] = line.split(':')
    if (!/^(?:connection|upgrade|http2-settings|expect)$/.test(name)) headers[name] = line.slice(name.length + 1).trim()
  }
  await new Promise<void>((resolve) => {
    session.on('close', resolve)
    const stream = session.request({ ':method': made.method, ':path': targetOf(made), ...headers })
    stream.on('error', () => session.close()).on('close', () => session.close()).resume()
    stream.end(made.method === 'POST' ? body : '')
  })
}

/** The value that a provider takes for its credential. */
function credentialIn (text: string): string[] {
  return text.split(/[\s=;,]+/).filter((word) => word.startsWith('canary-'))
}

for (const [name, place] of Object.entries(places)) {
  t.test(name, async (t) => {
    const providers = await startProviders(t)
    const settings: FastifyServerOptions = Object.assign({}, place.server, place.http2 === true && { http2: true })
    const app = Fastify(settings)
    t.teardown(() => app.close())
    await place.build(app, providers.by)
    const url = await listen(app)
    const send = place.http2 === true ? sendOverHttp2 : sendPlain
    let passed = 0
    await fc.assert(fc.asyncProperty(call, async (made) => {
      providers.came()
      await send(url, { ...made, path: /prefix/.test(name) ? made.path.replace(/^\//, '/llm/') : made.path })
      const came = providers.came()
      const goes = made.key === 'none' ? undefined : place.goes[made.key]
      if (goes === undefined && came.length > 0) throw new Error(`without a key for it: ${JSON.stringify(came)}`)
      if (came.length > 1) throw new Error(`more than once: ${JSON.stringify(came)}`)
      for (const { at, text } of came) {
        passed += 1
        if (at !== goes) throw new Error(`not where its group goes: ${at}`)
        if (place.http2 !== true && (made.upgrade === 'socket' || made.upgrade === 'odd')) throw new Error('an upgrade')
        const found = credentialIn(text)
        // A mount sets what it likes for its own upstream; elsewhere it is the one of the family.
        const isRight = goes === 'mount' ? found.every((word) => word === secrets.mount) : found.length === 1 && found[0] === secrets[goes]
        if (!isRight) throw new Error(`other secrets: ${found.join()} in ${text}`)
      }
    }), { numRuns: runs, examples: ordinary })
    t.ok(passed > 0, `${passed} requests with a key went where they belong`)
  })
}
