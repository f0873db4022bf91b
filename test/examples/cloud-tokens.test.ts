import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { launch, until } from '../helpers/launch.js'
import { startUpstream } from '../helpers/upstream.js'
import { chat } from '../standalone/run.js'

const folder = new URL('../../examples/cloud-tokens/', import.meta.url)

interface TokenServer {
  readonly url: string
  /** What it was asked: method, path, what proves who asks. */
  readonly asked: string[]
}

/** Both clouds' token services: each token is another one. */
async function startTokens (t: Test, expiresIn: number): Promise<TokenServer> {
  const asked: string[] = []
  const server = createServer(async (request, response) => {
    asked.push(`${request.method} ${request.url} ${request.headers['metadata-flavor'] ?? ''}${await text(request)}`)
    const token = { token_type: 'Bearer', access_token: `token-${asked.length}`, expires_in: expiresIn }
    response.setHeader('content-type', 'application/json').end(JSON.stringify(token))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  return { url: `http://127.0.0.1:${Object(server.address()).port}`, asked }
}

t.test('each cloud is sent a token of its own, asked for once, and another one where it is refused', async (t) => {
  const [azure, vertex, tokens] = [await startUpstream(t), await startUpstream(t), await startTokens(t, 3_600)]
  for (const upstream of [azure, vertex]) upstream.respond = () => ({ fixture: 'chat_completions.json' })
  const child = launch(t, new URL('app.js', folder).pathname, [], {
    AZURE_URL: `${azure.url}/openai/v1`,
    VERTEX_URL: `${vertex.url}/v1/projects/p/locations/l/endpoints/openapi`,
    ENTRA_URL: tokens.url,
    ENTRA_TENANT: 'tenant',
    ENTRA_CLIENT_ID: 'me',
    ENTRA_CLIENT_SECRET: 'my secret',
    METADATA_URL: tokens.url,
    GATEWAY_KEY: 'my-key',
    PORT: '0',
  })
  const [, origin = ''] = await until(child.out, /^listening on (.*)$/)
  const ask = async (model: string): Promise<number> => {
    const reply = await chat(origin, 'my-key', { model })
    await reply.text()
    return reply.status
  }
  t.strictSame([await ask('gpt-5'), await ask('gpt-5')], [200, 200])
  t.strictSame([await ask('google/gemini-2.5-pro'), await ask('google/gemini-2.5-pro')], [200, 200])
  t.strictSame(tokens.asked, [
    `POST /tenant/oauth2/v2.0/token ${new URLSearchParams({
      grant_type: 'client_credentials', client_id: 'me', client_secret: 'my secret', scope: 'https://cognitiveservices.azure.com/.default',
    })}`,
    'GET /computeMetadata/v1/instance/service-accounts/default/token Google',
  ])
  const seen = (upstream: typeof azure): unknown[] => upstream.seen.map(({ url, headers }) => [url, headers.authorization])
  t.strictSame(seen(azure), Array(2).fill(['/openai/v1/chat/completions', 'Bearer token-1']))
  t.strictSame(seen(vertex), Array(2).fill(['/v1/projects/p/locations/l/endpoints/openapi/chat/completions', 'Bearer token-2']))

  azure.queue({ status: 401, body: { error: { message: 'the token has been revoked' } } })
  t.equal(await ask('gpt-5'), 200)
  t.strictSame(seen(azure).slice(2), [['/openai/v1/chat/completions', 'Bearer token-1'], ['/openai/v1/chat/completions', 'Bearer token-3']])
})
