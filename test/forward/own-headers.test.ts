import httpProxy from '@fastify/http-proxy'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import llmGateway, { proxyOptions } from '../../plugins/index.js'
import { credentialHeaders, gatewayHeaders, signInHeaders } from '../../plugins/protocols/index.js'
import { everyProtocol, gatewayOptions, secret } from '../helpers/gateway.js'
import { startUpstream } from '../helpers/upstream.js'

const payload = { model: 'm', messages: [{ role: 'user', content: 'x' }] }

/** Written out, and not read from where the rule has them: each that is missing there would be sent on. `authorization` has the key. */
const secretHeaders = [
  'proxy-authorization', 'api-key', 'x-api-key', 'x-goog-api-key', 'cookie', 'apikey', 'ocp-apim-subscription-key', 'x-auth-token',
  'x-access-token', 'x-authorization', 'x-goog-iam-authorization-token', 'x-forwarded-authorization', 'sec-websocket-protocol',
  'cf-access-jwt-assertion', 'cf-access-token', 'cf-access-client-id', 'cf-access-client-secret', 'x-goog-iap-jwt-assertion',
  'x-serverless-authorization', 'x-amzn-oidc-data', 'x-amzn-oidc-accesstoken', 'x-amzn-oidc-identity', 'x-auth-request-access-token',
  'x-ms-token-aad-access-token', 'x-ms-token-aad-id-token', 'x-ms-token-aad-refresh-token', 'x-ms-client-principal',
  'x-pomerium-jwt-assertion', 'x-authentik-jwt', 'x-amzn-ava-user-context', 'teleport-jwt-assertion',
  'x-vercel-oidc-token',
  'cf-aig-authorization', 'helicone-auth', 'x-litellm-api-key', 'x-portkey-api-key', 'x-portkey-config', 'x-portkey-virtual-key', 'x-bf-vk',
  'x-bf-direct-key', 'x-portkey-aws-secret-access-key', 'x-portkey-aws-session-token', 'x-portkey-azure-ad-token',
  'x-portkey-azure-entra-client-secret', 'x-portkey-vertex-service-account-json', 'helicone-fallbacks',
]

const choices = [
  'cf-aig-byok-alias', 'cf-aig-gateway-id', 'helicone-target-url', 'helicone-openai-api-base', 'x-bf-api-key',
  'x-bf-api-key-id', 'x-portkey-custom-host', 'x-portkey-provider', 'x-portkey-huggingface-base-url', 'x-portkey-azure-foundry-url',
  'x-portkey-azure-resource-name', 'x-portkey-aws-region', 'x-portkey-vertex-project-id', 'x-portkey-openai-organization',
]

const others = {
  'x-kept': '1',
  'x-portkey-trace-id': 't',
  'x-portkey-span-id': 's',
  'x-portkey-parent-span-id': 'p',
  'x-portkey-metadata': '{}',
  'x-portkey-cache-force-refresh': 'true',
  'x-portkey-debug': 'false',
  'x-portkey-strict-open-ai-compliance': 'false',
  'x-portkey-anthropic-beta': 'b',
  'cf-aig-cache-ttl': '1',
  'x-bf-session-id': 's',
}

async function apps (t: Test, upstream: string): Promise<Record<string, FastifyInstance>> {
  const own = Fastify()
  const adapted = Fastify()
  const plain = Fastify()
  for (const app of [own, adapted, plain]) t.teardown(() => app.close())
  await own.register(llmGateway, gatewayOptions(upstream))
  for (const app of [adapted, plain]) {
    await app.register(llmGateway, {
      groups: { all: { protocols: everyProtocol } }, keys: [{ id: 'caller', group: 'all', secret }], routes: false,
    })
    await app.register(httpProxy, { upstream, prefix: '/v1', rewritePrefix: '/v1', ...app === adapted ? proxyOptions() : {} })
  }
  return { 'own routes': own, 'an adapted mount': adapted, 'a plain mount': plain }
}

t.test('no provider sees how its caller is signed in at a proxy in front, nor is it told another address', async (t) => {
  const upstream = await startUpstream(t)
  t.strictSame(['authorization', ...secretHeaders], [...credentialHeaders, ...signInHeaders, ...gatewayHeaders], 'each is asked with here')
  const names = [...secretHeaders, ...choices].flatMap((name) => [name, name.toUpperCase(), name.replaceAll('-', '_')])
  const headers = Object.fromEntries(names.map((name) => [name, 'canary']))
  for (const [place, app] of Object.entries(await apps(t, upstream.url))) {
    const reply = await app.inject({
      method: 'POST', url: '/v1/chat/completions', headers: { ...headers, ...others, authorization: `Bearer ${secret}` }, payload,
    })
    t.equal(reply.statusCode, 200, place)
    const seen = upstream.seen.at(-1)
    t.notMatch(String(seen?.rawHeaders), /canary/, place)
    t.match(seen?.headers, others, place)
  }
})

t.test('what a proxy in front tells of a caller is not for providers, and another path, method or body is for nobody', async (t) => {
  const upstream = await startUpstream(t)
  const ofCaller = [
    'cf-connecting-ip', 'cf-ray', 'cf-visitor', 'cf-ipcountry', 'cf-warp-tag-id', 'true-client-ip', 'x-client-ip', 'x-cluster-client-ip',
    'fastly-client-ip', 'fly-client-ip', 'x-azure-clientip', 'do-connecting-ip', 'cloudfront-viewer-address', 'x-forwarded',
    'x-forwarded-for', 'x-original-forwarded-for', 'x-envoy-external-address', 'x-appengine-user-ip', 'client-cert', 'x-client-cert',
    'ssl-client-verify', 'x-amzn-mtls-clientcert', 'x-amzn-oidc-identity', 'x-auth-request-email', 'x-goog-authenticated-user-email',
    'x-ms-client-principal-name', 'x-pomerium-claim-email', 'x-authentik-email', 'tailscale-user-login', 'remote-user', 'x-remote-user',
    'x-webauth-user', 'x-azure-socketip', 'x-envoy-peer-metadata', 'x-envoy-decorator-operation', 'x-amzn-tls-version', 'x-goog-iap-id',
    'x-ms-token-aad-expires-on', 'x-consumer-id', 'x-consumer-username', 'x-credential-identifier', 'x-anonymous-consumer', 'x-userinfo',
    'x-authenticated-userid', 'x-id-token', 'x-raw-id-token', 'x-apigateway-api-userinfo', 'x-endpoint-api-userinfo',
    'x-amzn-request-context', 'x-amzn-lambda-context', 'x-client-verify', 'remote-name',
    'x-ssl-client-s-dn', 'ssl-client-subject-dn', 'x-arr-clientcert', 'x-amzn-ava-user-context', 'remote-groups', 'remote-email',
    'x-vercel-forwarded-for', 'x-vercel-ip-city', 'x-vercel-sc-headers', 'forwarded', 'x-real-ip', 'baggage',
  ]
  const ofPath = [
    'x-original-url', 'x-rewrite-url', 'x-original-uri', 'x-envoy-original-path', 'x-waws-unencoded-url', 'x-ms-original-url',
    'x-forwarded-uri', 'x-request-uri', 'x-http-method-override', 'x-http-method', 'x-method-override',
  ]
  const kept = {
    'cf-aig-metadata': '{}',
    'x-ms-client-request-id': '1',
    'x-goog-api-client': 'a',
    'x-amz-date': 'd',
    'x-client-name': 'c',
    'x-stainless-os': 'l',
    'x-vercel-ai-ui-message-stream': 'v1',
  }
  for (const [place, app] of Object.entries(await apps(t, upstream.url))) {
    const names = place === 'a plain mount' ? ofPath : [...ofCaller, ...ofPath]
    const spelled = [...names.flatMap((name) => [name, name.replaceAll('-', '_')]), 'content_type', 'content_length', 'content_encoding']
    const headers = Object.fromEntries(spelled.map((name) => [name, 'canary']))
    await app.inject({
      method: 'POST', url: '/v1/chat/completions', headers: { ...headers, ...kept, authorization: `Bearer ${secret}` }, payload,
    })
    const seen = upstream.seen.at(-1)
    t.notMatch(String(seen?.rawHeaders), /canary/, place)
    t.match(seen?.headers, kept, place)
  }
})

t.test('a caller cannot set a header of an upstream beside it, in another spelling', async (t) => {
  const upstream = await startUpstream(t)
  const main = {
    url: upstream.url,
    credential: 's3',
    credentialHeader: 'x-main-auth',
    headers: { 'x-org': 'ours', x_team: 'ours', x_cost: 'ours', 'helicone-auth': 'operators' },
  }
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(llmGateway, gatewayOptions('', { upstreams: { main } }))
  await app.inject({
    method: 'POST',
    url: '/v1/chat/completions',
    headers: {
      authorization: `Bearer ${secret}`,
      x_org: 'canary',
      x_team: 'canary',
      'x-cost': 'canary',
      'X_Main-Auth': 'canary',
      'x-org': 'canary',
      'helicone-auth': 'canary',
      x_other: 'kept',
    },
    payload,
  })
  t.notMatch(String(upstream.seen[0]?.rawHeaders), /canary/)
  t.match(upstream.seen[0]?.headers, { ...main.headers, 'x-main-auth': 's3', x_other: 'kept' })
})

t.test('a caller is not sent elsewhere with its key, nor asked for a password of the provider', async (t) => {
  const upstream = await startUpstream(t)
  for (const [place, app] of Object.entries(await apps(t, upstream.url))) {
    if (place === 'a plain mount') continue
    for (const location of ['https://elsewhere.example/v1/messages', '/v1/messages', '//elsewhere.example']) {
      const told = { location, 'content-location': location, refresh: `0;url=${location}`, 'www-authenticate': 'Basic realm="canary"' }
      for (const status of [201, 307, 308, 401]) {
        upstream.queue({ status, headers: told, body: '{}' })
        const reply = await app.inject({
          method: 'POST',
          url: '/v1/messages',
          headers: { 'x-api-key': secret, 'anthropic-version': '2023-06-01', range: 'bytes=9-', 'if-range': '"a"' },
          payload: { ...payload, max_tokens: 1 },
        })
        t.equal(reply.statusCode, status, place)
        t.strictSame(Object.keys(told).filter((name) => name in reply.headers), [], `${place}: ${status}`)
        t.match(upstream.seen.at(-1)?.headers, { range: undefined, 'if-range': undefined }, place)
      }
    }
  }
})
