import { totalmem } from 'node:os'
import Fastify from 'fastify'
import t from 'tap'
import { bundleOptions } from '../../plugins/standalone/bundle-options.js'
import { parseConfig } from '../../plugins/standalone/config.js'
import { createGateway, noCompiler } from '../../plugins/standalone/gateway.js'

t.test('a request in a log line is its method and path, without the query', async (t) => {
  const lines: string[] = []
  const config = parseConfig('upstreams: { a: { simulate: true } }\ngroups: { a: { protocols: [messages] } }', {})
  const { app } = await createGateway(config, {
    simulator: null,
    state: null,
    cells: {},
    consolePath: '/console',
    life: { draining: false },
    logStream: { write: (line) => { lines.push(line) } },
  })
  t.teardown(async () => await app.close())
  // What the start warns of.
  lines.length = 0
  app.log.info({ req: { method: 'GET', url: '/a?key=c4nary', headers: { authorization: 'Bearer c4nary' } } })
  t.match(JSON.parse(lines.join('')), { req: { method: 'GET', url: '/a' } })
  t.notMatch(lines.join(''), 'c4nary')
})

t.test('log lines that are dropped are counted', async (t) => {
  const config = parseConfig(
    'upstreams: { a: { simulate: true } }\ngroups: { a: { protocols: [messages] } }\nmetrics: { path: /metrics }', {}
  )
  let drop = (): void => {}
  const logStream = { write: () => {}, onDrop: (listener: () => void) => { drop = listener } }
  const { app } = await createGateway(config, {
    simulator: null, state: null, cells: {}, consolePath: '/console', life: { draining: false }, logStream,
  })
  t.teardown(async () => await app.close())
  drop()
  t.match((await app.inject('/metrics')).body, /^llm_gateway_log_lines_dropped_total 1$/m)
})

t.test('every field that the schema knows is taken by the part it is for', async (t) => {
  const config = parseConfig(`
listen: { host: 127.0.0.1, port: 0, requestTimeoutMs: 60000, shutdownGraceMs: 0, trustProxy: [loopback, 10.0.0.0/8, ::1] }
prefix: /llm/v-2
upstreams:
  main: { url: https://models.example/base, credential: forward }
  demo: { simulate: true, priceFactor: 2 }
groups:
  chat:
    protocols: [chat_completions, responses, images, embeddings, messages, generate_content]
    upstream: main
    thirdParty: false
    models: [m]
    limits: { requestsPerMinute: 1, tokensPerMinute: 1, concurrency: 1, balance: 0 }
    onStoreFailure: local
keys: [{ id: a, group: chat, secret: b, expires: 2027-01-01T00:00:00Z, disabled: true, limits: { balance: 1 } }]
state:
  engine: redis
  path: ./data
  url: redis://localhost
  cluster: true
  prefix: p
  commandTimeoutMs: 50
  holdTtlMs: 1
  ledger: { maxFileBytes: 1, maxFileAgeMs: 1, keepMs: 1 }
auth:
  cache: { max: 1, ttlMs: 0, negativeMax: 1, negativeTtlMs: 0, staleMs: 0, maxLoads: 1, maxLoadsPerSecond: 1 }
  failures: { perMinute: 1, maxAddresses: 1 }
  conflict: reject
  optionalSources: [api-key, gemini-bearer]
  versions: { anthropic: [2023-06-01] }
limits: { balanceStatus: 402, maxOutputTokens: { "*": 1, m: 2 }, maxInputTokens: 1, leasePercent: 100 }
console: { listen: { port: 0, host: 127.0.0.1 }, hosts: [console.example] }
validation:
  maxBodyBytes: 1
  maxBodyBytesByEndpoint: { images.edits: 2 }
  maxDepth: 9
  schemas: { chat_completions: { type: object } }
usage: { includeUsage: { main: false } }
forward:
  connections: 1
  headersTimeoutMs: 0
  idleTimeoutMs: 0
  keepAliveCommentMs: 0
  connectTimeoutMs: 1
  drain: { maxMs: 0, maxBytes: 0, maxConcurrent: 0 }
overload: { maxLoopDelayMs: 0, maxHeapPercent: 100, maxConnections: 1, maxActive: 1, maxQueued: 0, queueMs: 1 }
tracing: { baggage: true }
metrics: { path: /m, hosts: [m.example], models: [m], maxModels: 1, maxCells: 1, openTelemetry: false, semconv: both }
log: { level: silent }
`, {})
  const { app } = await createGateway(config, {
    simulator: null, state: null, cells: {}, consolePath: '/console', life: { draining: false },
  })
  t.teardown(async () => await app.close())
  const reply = await app.inject({ method: 'POST', url: '/llm/v-2/v1/chat/completions', headers: { authorization: 'Bearer b' } })
  t.match(reply.json(), { error: { code: 'disabled_api_key' } })
  t.equal((await app.inject('/m')).statusCode, 200)
  t.equal((await app.inject('/console')).statusCode, 200)
  const statusAt = async (host: string) => (await app.inject({ url: '/console', headers: { host } })).statusCode
  t.strictSame([await statusAt('console.example'), await statusAt('evil.example')], [200, 403])
})

t.test('a log that takes no more lines holds no end up', async (t) => {
  const disk = { full: false }
  const write = (): void => { if (disk.full) throw new Error('ENOSPC') }
  const config = parseConfig(
    'upstreams: { a: { url: "http://127.0.0.1:9", credential: c } }\ngroups: { a: { protocols: [messages] } }\nkeys: [{ id: a, group: ' +
      'a, secret: b }]',
    {}
  )
  const { app, live } = await createGateway(config, {
    simulator: null, state: null, cells: {}, consolePath: '/console', life: { draining: false }, logStream: { write },
  })
  t.teardown(async () => await app.close())
  disk.full = true
  const headers = { 'x-api-key': 'b', 'anthropic-version': '2023-06-01' }
  const reply = await app.inject({
    method: 'POST', url: '/v1/messages', headers, payload: { model: 'm', max_tokens: 1, messages: [{ role: 'user', content: 'x' }] },
  })
  t.equal(reply.statusCode, 502)
  await live.idle()
  disk.full = false
})

t.test('a route that had a schema would fail the start', async (t) => {
  const app = Fastify({ schemaController: { compilersFactory: { buildValidator: noCompiler, buildSerializer: noCompiler } } })
  t.teardown(async () => await app.close())
  app.get('/', { schema: { querystring: { type: 'object' } } }, async () => ({}))
  await t.rejects(async () => await app.ready(), { message: 'no route of the gateway has a schema' })
})

t.test('workers share what large bodies may take of the memory, unless the file says how much each may', async (t) => {
  const most = (more: string): unknown => {
    const config = parseConfig(`upstreams: { a: { simulate: true } }\ngroups: { a: { protocols: [messages] } }\n${more}`, {})
    return Object(bundleOptions(config, { simulator: null, state: null, cells: {}, consolePath: '/c' }).overload).maxHeldBytes
  }
  const alone = Number(most(''))
  t.ok(alone > 0 && alone <= totalmem() / 4)
  t.equal(Number(most('listen: { workers: 4 }')), Math.floor(alone / 4), 'each has a fourth')
  t.equal(most('listen: { workers: 4 }\noverload: { maxHeldBytes: 77 }'), 77)
  t.equal(most('overload: false'), undefined)
})
