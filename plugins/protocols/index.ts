/** Every protocol and endpoint that the gateway knows. */
import { anthropic } from './family-anthropic.js'
import { gemini } from './family-gemini.js'
import { openai } from './family-openai.js'
import { protocols, type ProtocolLabel, type ProtocolName } from './list.js'
import { models } from './models/endpoint.js'
import type { EndpointOf, Family, FamilyName } from './types.js'

export type * from './types.js'
export { routePattern } from './endpoint.js'
export {
  endpointIds, protocolNames, protocols, schemaNames, type EndpointId, type ProtocolLabel, type ProtocolName, type SchemaName,
} from './list.js'
export { besideVersions } from './beside-versions.js'
export { sockets } from './sockets/endpoint.js'
export { usageHiding } from './usage-hiding.js'

export type Endpoint = EndpointOf<ProtocolLabel, ProtocolName>

export const families: Readonly<Record<FamilyName, Family>> = { openai, anthropic, gemini }

/** All endpoints except the model lists, which are distinguished by headers. */
export const endpoints: readonly Endpoint[] = protocols.flatMap<Endpoint>((protocol) => protocol.endpoints)

export const modelLists = models

/** Where a JSON body names its model: paths such as `requests.*.model`. If the URL names the model, the body may repeat it. */
export function modelPaths ({ modelField, otherModels }: Endpoint): readonly string[] {
  return modelField === null ? otherModels : [modelField]
}

/** The parts of a request that identify the family of an address which several families share. */
export interface Caller {
  readonly headers: Readonly<Record<string, unknown>>
  /** Including its `?`, or empty. */
  readonly query: string
  /** The version segments of the raw path, in order. */
  readonly versions: readonly string[]
}

/**
 * The family by headers and query, for the model list and for paths of no endpoint (docs/clients.md). If no header identifies it, a version
 * that only one family uses does.
 */
export function familyOf ({ headers, query, versions }: Caller): FamilyName {
  if (headers['anthropic-version'] !== undefined) return 'anthropic'
  if (headers['x-goog-api-key'] !== undefined || /[?&]key=/.test(query)) return 'gemini'
  if (headers.authorization !== undefined) return 'openai'
  if (versions.includes('v1beta')) return 'gemini'
  // Such a caller is told of its version header, and not to send another family's key.
  return headers['x-api-key'] === undefined ? 'openai' : 'anthropic'
}

/** Headers and cookies that may carry a secret in any family, or for a proxy in front of one: none of them is ever forwarded. */
export const credentialHeaders: readonly string[] = [
  'authorization', 'proxy-authorization', 'api-key', 'x-api-key', 'x-goog-api-key', 'cookie',
  'apikey', 'ocp-apim-subscription-key', 'x-auth-token', 'x-access-token', 'x-authorization', 'x-goog-iam-authorization-token',
  // Browsers' sockets have a key in it (`openai-insecure-api-key.KEY`).
  'sec-websocket-protocol',
]

/**
 * What proxies that sign callers in pass to the server behind them, and what callers send to such a proxy: none of it is for a provider.
 * Cloudflare Access, Google IAP and Cloud Run, AWS, oauth2-proxy, Azure App Service, Pomerium, authentik, Teleport.
 */
export const signInHeaders: readonly string[] = [
  'cf-access-jwt-assertion', 'cf-access-token', 'cf-access-client-id', 'cf-access-client-secret', 'x-goog-iap-jwt-assertion',
  'x-serverless-authorization', 'x-amzn-oidc-data', 'x-amzn-oidc-accesstoken', 'x-amzn-oidc-identity', 'x-auth-request-access-token',
  'x-ms-token-aad-access-token', 'x-ms-token-aad-id-token', 'x-ms-token-aad-refresh-token', 'x-ms-client-principal',
  'x-pomerium-jwt-assertion', 'x-authentik-jwt', 'x-amzn-ava-user-context', 'teleport-jwt-assertion',
]

/**
 * What proxies and content networks in front add about a caller: its address, country or certificate, or its identity at a sign-in.
 * Providers behind Cloudflare answer 403 if its own headers come from elsewhere (error 1000); those of its AI Gateway are for callers to
 * set.
 */
export const frontHeaders = new RegExp(`^(?:${[
  'x-forwarded', 'x-original-forwarded-', '(?:x-)?(?:true-|cluster-|fastly-|fly-|azure-)?client-?ip$', 'x-azure-socketip$',
  'do-connecting-ip$', 'cf-(?!aig-)', 'cloudfront-', 'x-appengine-', 'x-envoy-(?:external|peer)-', 'x-vercel-(?:ip|forwarded|proxied)-',
  '(?:x-)?(?:ssl-client-|client-(?:cert|verify))', 'x-arr-clientcert$', 'x-amzn-(?:ava|oidc|mtls|tls)-', 'x-auth-request-',
  'x-goog-(?:authenticated-user|iap)-', 'x-ms-(?:client-principal|token-aad)', 'x-pomerium-', 'x-authentik-', 'tailscale-user-',
  '(?:x-)?(?:remote|webauth)-(?:user|groups|name|email)',
].join('|')})`)

/**
 * Headers by which other gateways, as an upstream may be one, take a secret, the name of a stored one, or an address, to which they would
 * send the upstream's credential. Bifrost, Cloudflare AI Gateway, Helicone, LiteLLM, Portkey. For the headers of an upstream's own.
 */
export const gatewayHeaders: readonly string[] = [
  'cf-aig-authorization', 'helicone-auth', 'helicone-target-url', 'helicone-openai-api-base', 'x-litellm-api-key', 'x-portkey-api-key',
  'x-portkey-custom-host', 'x-portkey-config', 'x-portkey-virtual-key', 'x-portkey-provider', 'x-bf-vk', 'cf-aig-byok-alias',
  'helicone-fallbacks', 'x-portkey-huggingface-base-url', 'x-portkey-azure-foundry-url', 'x-bf-api-key', 'x-bf-api-key-id',
  'x-bf-direct-key',
]

/** The same for queries, as in `Family.queryCarriers`. */
export const credentialParameters: readonly string[] = Object.values(families).flatMap(({ queryCarriers }) => queryCarriers)

/** Headers by which Azure chooses a model: the image model, and the deployment where several share one address. */
export const modelHeaders: readonly string[] = ['x-ms-oai-image-generation-deployment', 'azureml-model-deployment']
