/** The clouds' own libraries against local token services: TLS for Entra ID, as its library wants it, and a metadata server. */
import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { Server } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { launch, until } from '../helpers/launch.js'
import { listening } from '../helpers/listening.js'
import { startUpstream } from '../helpers/upstream.js'
import { chat } from '../standalone/run.js'

const folder = new URL('../../examples/cloud-tokens/', import.meta.url)
const missing = spawnSync('openssl', ['version']).error !== undefined

interface Tokens {
  /** What each asked that was given a token: what proves who it is, and for what. */
  readonly entra: string[]
  readonly google: string[]
  /** Seconds that the next tokens last. */
  lastS: number
  readonly env: Readonly<Record<string, string>>
}

async function listen (t: Test, server: Server): Promise<string> {
  return new URL(await listening(t, server)).host
}

/** What the library asks for first (OpenID Connect Discovery 1.0). */
function addresses (of: string): object {
  return {
    issuer: `${of}/v2.0`,
    jwks_uri: `${of}/keys`,
    authorization_endpoint: `${of}/oauth2/v2.0/authorize`,
    token_endpoint: `${of}/oauth2/v2.0/token`,
  }
}

/** Each token is another one. */
async function startTokens (t: Test): Promise<Tokens> {
  const home = t.testdir({})
  execFileSync('openssl', [
    'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', 'key.pem', '-out', 'cert.pem',
    '-days', '2', '-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1',
  ], { cwd: home, stdio: 'ignore' })
  const [entra, google]: [string[], string[]] = [[], []]
  const token = (of: string, count: number): object => {
    return { token_type: 'Bearer', access_token: `${of}-${count}`, expires_in: tokens.lastS }
  }
  const entraService: RequestListener = async (request, response) => {
    const asked = new URLSearchParams(await text(request))
    const isToken = request.method === 'POST' && String(request.url).startsWith('/tenant/oauth2/v2.0/token?')
    if (isToken) entra.push(['grant_type', 'client_id', 'client_secret', 'scope'].map((name) => asked.get(name)).join(' '))
    const answer = isToken ? token('entra', entra.length) : addresses(`https://${request.headers.host}/tenant`)
    response.setHeader('content-type', 'application/json').end(JSON.stringify(answer))
  }
  const metadata: RequestListener = (request, response) => {
    response.setHeader('metadata-flavor', 'Google')
    const { pathname, searchParams } = new URL(String(request.url), 'http://metadata')
    const isToken = pathname === '/computeMetadata/v1/instance/service-accounts/default/token'
    if (isToken) google.push(`${request.headers['metadata-flavor']} ${searchParams.get('scopes')}`)
    else if (pathname !== '/computeMetadata/v1/instance') response.statusCode = 404
    response.setHeader('content-type', 'application/json').end(isToken ? JSON.stringify(token('google', google.length)) : '{}')
  }
  const cert = join(home, 'cert.pem')
  const tls = createHttpsServer({ key: readFileSync(join(home, 'key.pem')), cert: readFileSync(cert) }, entraService)
  const env = {
    HOME: home,
    NODE_EXTRA_CA_CERTS: cert,
    AZURE_AUTHORITY_HOST: `https://${await listen(t, tls)}`,
    AZURE_TENANT_ID: 'tenant',
    AZURE_CLIENT_ID: 'me',
    AZURE_CLIENT_SECRET: 'my secret',
    GCE_METADATA_HOST: await listen(t, createServer(metadata)),
    // As Cloud Run says where it is. Elsewhere the library looks for the service once, for three seconds, and does without it for good.
    K_SERVICE: 'gateway',
    // Without it the library runs `gcloud`, where that is installed, which may take longer than the gateway waits for a token.
    GOOGLE_CLOUD_PROJECT: 'project',
  }
  const tokens: Tokens = { entra, google, lastS: 3_600, env }
  return tokens
}

async function start (t: Test) {
  const [azure, vertex, tokens] = [await startUpstream(t), await startUpstream(t), await startTokens(t)]
  for (const upstream of [azure, vertex]) upstream.respond = () => ({ fixture: 'chat_completions.json' })
  const run = async (lastS: number) => {
    tokens.lastS = lastS
    const child = launch(t, new URL('app.js', folder).pathname, [], {
      AZURE_URL: `${azure.url}/openai/v1`,
      VERTEX_URL: `${vertex.url}/v1/projects/p/locations/l/endpoints/openapi`,
      GATEWAY_KEY: 'my-key',
      PORT: '0',
      ...tokens.env,
    })
    const [, origin = ''] = await until(child.out, /^listening on (.*)$/)
    return async (model: string): Promise<number> => {
      const reply = await chat(origin, 'my-key', { model })
      await reply.text()
      return reply.status
    }
  }
  const seen = ({ seen: requests }: typeof azure): unknown[] => requests.map(({ headers }) => headers.authorization)
  return { azure, vertex, tokens, run, seen }
}

const [gpt, gemini] = ['gpt-5', 'google/gemini-2.5-pro']

t.test('each cloud is sent a token of its own, asked for once for all, and another one where it is refused', {
  skip: missing && 'openssl not installed',
}, async (t) => {
  const { azure, vertex, tokens, run, seen } = await start(t)
  const ask = await run(3_600)
  const many = Array.from({ length: 20 }, (_, at) => at % 2 === 0 ? gpt : gemini)
  t.strictSame(await Promise.all(many.map(ask)), many.map(() => 200))
  t.strictSame([tokens.entra, tokens.google], [
    ['client_credentials me my secret https://cognitiveservices.azure.com/.default'],
    ['Google https://www.googleapis.com/auth/cloud-platform'],
  ])
  t.strictSame([seen(azure), seen(vertex)], [Array(10).fill('Bearer entra-1'), Array(10).fill('Bearer google-1')])
  t.equal(azure.seen[0]?.url, '/openai/v1/chat/completions')
  t.equal(vertex.seen[0]?.url, '/v1/projects/p/locations/l/endpoints/openapi/chat/completions')

  // Both libraries remember the token that is refused here.
  for (const upstream of [azure, vertex]) upstream.queue({ status: 401, body: { error: { message: 'the token has been revoked' } } })
  t.strictSame([await ask(gpt), await ask(gemini)], [200, 200])
  t.strictSame(seen(azure).slice(10), ['Bearer entra-1', 'Bearer entra-2'])
  t.strictSame(seen(vertex).slice(10), ['Bearer google-1', 'Bearer google-2'])
})

t.test('another token is asked for before one ends, once for all, and nobody waits for it', {
  skip: missing && 'openssl not installed',
}, async (t) => {
  const { azure, vertex, tokens, run, seen } = await start(t)
  // Half of so short a time is the longest that a token is used without another question.
  const ask = await run(16)
  t.strictSame(await Promise.all([gpt, gemini].map(ask)), [200, 200])
  const first = Date.now()
  tokens.lastS = 3_600
  while ((tokens.entra.length < 2 || tokens.google.length < 2) && Date.now() < first + 60_000) {
    t.strictSame(await Promise.all([gpt, gemini, gpt, gemini].map(ask)), [200, 200, 200, 200])
    await pause(250)
  }
  t.ok(Date.now() < first + 16_000, 'before the first ones ended')
  await pause(250)
  t.strictSame(await Promise.all([gpt, gemini].map(ask)), [200, 200])
  t.same([tokens.entra.length, tokens.google.length], [2, 2])
  t.same([seen(azure).at(-1), seen(vertex).at(-1)], ['Bearer entra-2', 'Bearer google-2'])
  t.strictSame([new Set(seen(azure)), new Set(seen(vertex))], [
    new Set(['Bearer entra-1', 'Bearer entra-2']), new Set(['Bearer google-1', 'Bearer google-2']),
  ])
})
