/**
 * Every error of the table that a caller can be given, on every protocol, against envelopes written by hand
 * (`test/fixtures/errors/`). `{name}` in a fixture is filled with what the request was.
 */
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import Fastify from 'fastify'
import t from 'tap'
import { protocolNames, type ProtocolName } from '../../plugins/protocols/index.js'
import llmGateway, { type LlmGatewayOptions } from '../../plugins/index.js'
import { errorTable } from '../../plugins/core/errors/table.js'
import { listening } from '../helpers/listening.js'
import { startUpstream, type Script } from '../helpers/upstream.js'
import { credentials, main, send, type Call, type Change } from './calls.js'

interface Expected {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: object
}

type Envelopes = Readonly<Record<string, Expected>>

function envelopes (family: string): Envelopes {
  return JSON.parse(readFileSync(new URL(`../fixtures/errors/${family}.json`, import.meta.url), 'utf8'))
}

const fixtures: Readonly<Record<string, Envelopes>> = {
  openai: envelopes('openai'), anthropic: envelopes('anthropic'), gemini: envelopes('gemini'),
}

/** How a request of any protocol is made to fail, and what of it the message names. */
interface Provoke {
  readonly change?: (call: Call) => Change
  /** What the upstream does. */
  readonly script?: Script
  /** Which gateway gets the request; default: the ordinary one. */
  readonly gateway?: 'closed' | 'broken' | 'slow' | 'storeless'
  readonly names?: (call: Call) => Readonly<Record<string, string>>
}

const all: ProtocolName[] = [...protocolNames]
const nobody = { authorization: null, 'x-api-key': null, 'x-goog-api-key': null }
const key = (secret: string) => (): Change => ({ key: secret })
const header = (headers: NonNullable<Change['headers']>) => (): Change => ({ headers })

/** The credential header of the call's family with another value. */
const credential = (make: (value: string) => string | string[]) => ({ family }: Call): Change => {
  const [[name, value] = ['', '']] = Object.entries(credentials(family, 'sk-good'))
  return { headers: { [name]: make(value) } }
}

const firstField: Readonly<Record<string, readonly [param: string, reason: string]>> = {
  messages: ['max_tokens', 'max_tokens is required.'],
  generate_content: ['contents', 'contents is required.'],
}

const provocations: Readonly<Record<string, Provoke>> = {
  unknown_url: { change: () => ({ path: '/v1/nothing' }), names: () => ({ path: '/v1/nothing' }) },
  doubled_path: { change: ({ path }) => ({ path: `/v1/chat/completions${path}` }) },
  ambiguous_path: { change: ({ path }) => ({ path: path.replace('/v1', '/%2e/v1') }) },
  crowded_query: { change: ({ path }) => ({ path: `${path}?${'&%61'.repeat(257)}` }) },
  method_not_allowed: { change: () => ({ method: 'PUT' }) },
  unknown_action: {
    change: ({ path }) => ({ path: path.replace(/:\w+$/, ':answer') }), names: ({ path }) => ({ path: path.replace(/:\w+$/, ':answer') }),
  },
  upgrade_required: { change: header({ connection: 'upgrade', upgrade: 'websocket' }) },
  key_in_query: { change: ({ path }) => ({ path: `${path}?key=sk-good` }) },
  missing_api_key: { change: header(nobody) },
  malformed_api_key: { change: credential((value) => `${value} and more`) },
  duplicate_api_key: { change: credential((value) => [value, value]) },
  invalid_api_key: { change: key('sk-wrong') },
  disabled_api_key: { change: key('sk-disabled') },
  expired_api_key: { change: key('sk-expired') },
  missing_version: { change: header({ 'anthropic-version': null }) },
  unsupported_version: { change: header({ 'anthropic-version': '2001-01-01' }) },
  protocol_not_allowed: { change: key('sk-third'), names: ({ protocol }) => ({ protocol, allowed: 'no protocol here' }) },
  model_not_allowed: {
    change: key('sk-models'),
    names: ({ path, body }) => ({ model: /models\/([^:]+):/i.exec(path)?.[1] ?? String(JSON.parse(body).model) }),
  },
  model_required: { change: () => ({ key: 'sk-models', path: '/v1/images/variations', body: '{"image":"data:,"}' }) },
  access_denied: { change: key('sk-groupless'), gateway: 'storeless' },
  insufficient_quota: { change: key('sk-spent') },
  key_store_unavailable: { change: key('sk-down'), gateway: 'storeless' },
  unsupported_media_type: {
    change: header({ 'content-type': 'text/plain' }),
    names: () => ({ media: 'application/json' }),
  },
  unsupported_encoding: { change: header({ 'content-encoding': 'gzip' }) },
  body_too_large: { change: () => ({ body: `{"x":"${'x'.repeat(1_000)}"}` }) },
  missing_body: { change: () => ({ body: '', headers: { 'content-length': '0' } }) },
  invalid_json: { change: () => ({ body: Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]) }) },
  invalid_body: {
    change: ({ body }) => ({
      body: body.replace(/"(messages|input|prompt|max_tokens|contents)"/, '"nothing"').replace(/"model":"model-1",(?="nothing":"Say)/, ''),
    }),
    names: ({ protocol, body }) => {
      const known: Readonly<Record<string, string>> = {
        chat_completions: 'messages', responses: 'model', images: 'prompt', embeddings: 'input',
      }
      const [param, reason] = firstField[protocol] ?? [String(known[protocol]), `${known[protocol]} is required.`]
      return { param, reason, body }
    },
  },
  usage_hidden: { change: ({ path }) => ({ path: `${path}?fields=candidates` }) },
  bad_request: { change: header({ 'x-host': '400' }) },
  internal_error: { change: header({ 'x-host': '500' }) },
  not_authorized: { change: header({ 'x-host': '401' }) },
  too_many_requests: { change: header({ 'x-host': '429' }) },
  overloaded: { change: header({ 'x-host': '503' }) },
  upstream_unreachable: { gateway: 'closed' },
  upstream_reset: { script: { cutAt: 'headers' } },
  upstream_invalid: { gateway: 'broken' },
  upstream_timeout: { script: { stallAt: 'headers' }, gateway: 'slow' },
  upstream_error: { script: { status: 502, headers: { 'content-type': 'text/html' }, body: '<html></html>' } },
}

/** Errors that no caller of a plain request can be given, and where they are checked instead. */
const elsewhere: Readonly<Record<string, string>> = {
  upstream_aborted: 'told inside a stream: streams.test.ts, check 59',
  request_aborted: 'its caller has left',
  request_timeout: 'the standalone gateway, whose server looks after slow callers: sockets.test.ts',
  shutting_down: 'the standalone gateway, while it drains',
  too_many_auth_failures: 'test/auth/failures.test.ts',
  request_rate_exceeded: 'limits',
  token_rate_exceeded: 'limits',
  concurrency_exceeded: 'limits',
  limit_store_unavailable: 'limits',
  budget_exceeded: 'limits',
  model_not_priced: 'costs',
  model_not_found: 'upstreams',
  upstream_busy: 'upstreams',
  upstream_credential_unavailable: 'upstreams',
  body_unchecked: 'test/validation/large-bodies.test.ts',
}

/** Codes that a family cannot meet: it has no such header, or takes the key in the query. */
const without: Readonly<Record<string, readonly string[]>> = {
  key_in_query: ['generate_content'],
  unknown_action: ['chat_completions', 'responses', 'images', 'embeddings', 'messages'],
  missing_version: ['chat_completions', 'responses', 'images', 'embeddings', 'generate_content'],
  unsupported_version: ['chat_completions', 'responses', 'images', 'embeddings', 'generate_content'],
  // Elsewhere the schema wants the model, and validation tells its absence.
  model_required: ['chat_completions', 'responses', 'embeddings', 'messages', 'generate_content'],
}

function options (url: string): LlmGatewayOptions {
  return {
    upstreams: { main: { url, credential: 'upstream-secret' } },
    groups: {
      all: { protocols: all, upstream: 'main' },
      third: { protocols: all, upstream: 'main', thirdParty: false },
      models: { protocols: all, upstream: 'main', models: ['other'] },
      spent: { protocols: all, upstream: 'main', limits: { balance: 0 } },
    },
    keys: [
      { id: 'good', group: 'all', secret: 'sk-good' },
      { id: 'disabled', group: 'all', secret: 'sk-disabled', disabled: true },
      { id: 'expired', group: 'all', secret: 'sk-expired', expires: '2020-01-01T00:00:00Z' },
      { id: 'third', group: 'third', secret: 'sk-third' },
      { id: 'models', group: 'models', secret: 'sk-models' },
      { id: 'spent', group: 'spent', secret: 'sk-spent' },
    ],
    validation: { maxBodyBytes: 1_000 },
    metrics: false,
    log: false,
  }
}

async function start (own: LlmGatewayOptions): Promise<string> {
  const app = Fastify({ forceCloseConnections: true })
  await app.register(llmGateway, own)
  app.addHook('preHandler', async (request) => {
    const status = Number(request.headers['x-host'])
    if (status > 0) throw Object.assign(new Error('a secret of the host at 10.0.0.7'), { statusCode: status })
  })
  t.teardown(async () => await app.close())
  return await app.listen({ port: 0, host: '127.0.0.1' })
}

/** An upstream that speaks something, but not HTTP. */
async function startBabbler (): Promise<string> {
  const server: Server = createServer((socket) => { socket.once('data', () => socket.end('HELLO 200 WORLD\r\n\r\n')) })
  return await listening(t, server)
}

function fill (value: unknown, names: Readonly<Record<string, string>>): unknown {
  return JSON.parse(JSON.stringify(value).replace(/\{(\w+)\}/g, (place, name: string) => names[name] ?? place))
}

t.test('every error of the table is either provoked here or known to be checked elsewhere', async (t) => {
  t.same(Object.keys(errorTable).sort(), [...Object.keys(provocations), ...Object.keys(elsewhere)].sort())
})

t.test('every error, on every protocol, in the envelope of its family', async (t) => {
  const upstream = await startUpstream(t)
  const { keys: _, ...keyless } = options(upstream.url)
  const origins = {
    ordinary: await start(options(upstream.url)),
    // Port 1: a free port found now may be the next gateway's a moment later.
    closed: await start(options('http://127.0.0.1:1')),
    broken: await start(options(await startBabbler())),
    slow: await start({ ...options(upstream.url), forward: { headersTimeoutMs: 100 } }),
    storeless: await start({
      ...keyless,
      lookup (secret) {
        if (secret === 'sk-down') throw new Error('the table of keys is down')
        return { id: 'k', group: 'gone' }
      },
    }),
  }
  for (const [code, { change, script, gateway = 'ordinary', names }] of Object.entries(provocations)) {
    t.test(code, async (t) => {
      for (const call of main.filter(({ protocol }) => without[code]?.includes(protocol) !== true)) {
        upstream.clear()
        if (script !== undefined) upstream.queue(script)
        const reply = await send(origins[gateway], call, { key: 'sk-good', ...change?.(call) })
        const expected = fixtures[call.family]?.[code]
        const id = String(reply.headers['x-request-id'])
        t.equal(reply.status, expected?.status, `${call.protocol}: ${reply.text}`)
        t.strictSame(reply.json, fill(expected?.body, { id, origin: origins[gateway], ...names?.(call) }), call.protocol)
        t.match(reply.headers, { 'content-type': 'application/json; charset=utf-8', 'request-id': id, ...expected?.headers })
        for (const name of ['retry-after', 'x-should-retry']) t.equal(reply.headers[name], expected?.headers[name], name)
      }
    })
  }
})
