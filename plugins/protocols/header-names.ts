/** Headers of callers that must not reach a provider, and those that choose a model. */

/** Headers and cookies that may carry a secret in any family, or for a proxy in front of one: none of them is ever forwarded. */
export const credentialHeaders: readonly string[] = [
  'authorization', 'proxy-authorization', 'api-key', 'x-api-key', 'x-goog-api-key', 'cookie',
  'apikey', 'ocp-apim-subscription-key', 'x-auth-token', 'x-access-token', 'x-authorization', 'x-goog-iam-authorization-token',
  'x-forwarded-authorization',
  // Browsers' sockets have a key in it (`openai-insecure-api-key.KEY`).
  'sec-websocket-protocol',
]

/**
 * What sign-in proxies pass to the server behind them, and what callers send to such a proxy: none of it is for a provider.
 * Cloudflare Access, Google IAP and Cloud Run, AWS, oauth2-proxy, Azure App Service, Pomerium, authentik, Teleport, Vercel.
 */
export const signInHeaders: readonly string[] = [
  'cf-access-jwt-assertion', 'cf-access-token', 'cf-access-client-id', 'cf-access-client-secret', 'x-goog-iap-jwt-assertion',
  'x-serverless-authorization', 'x-amzn-oidc-data', 'x-amzn-oidc-accesstoken', 'x-amzn-oidc-identity', 'x-auth-request-access-token',
  'x-ms-token-aad-access-token', 'x-ms-token-aad-id-token', 'x-ms-token-aad-refresh-token', 'x-ms-client-principal',
  'x-pomerium-jwt-assertion', 'x-authentik-jwt', 'x-amzn-ava-user-context', 'teleport-jwt-assertion',
  'x-vercel-oidc-token',
]

/**
 * What proxies and content networks in front add about a caller: its address, country or certificate, or its identity at a sign-in.
 * All of Envoy's: others tell names of services here, or would be orders to a provider's Envoy.
 * Providers behind Cloudflare answer 403 if its own headers come from elsewhere (error 1000); those of its AI Gateway are for callers to
 * set.
 */
export const frontHeaders = new RegExp(`^(?:${[
  'x-forwarded', 'x-original-forwarded-', '(?:x-)?(?:true-|cluster-|fastly-|fly-|azure-)?client-?ip$', 'x-azure-socketip$',
  'do-connecting-ip$', 'cf-(?!aig-)', 'cloudfront-', 'x-appengine-', 'x-envoy-', 'x-vercel-(?!ai-)',
  '(?:x-)?(?:ssl-client-|client-(?:cert|verify))', 'x-arr-clientcert$', 'x-amzn-(?:ava|oidc|mtls|tls)-', 'x-auth-request-',
  'x-goog-(?:authenticated-user|iap)-', 'x-ms-(?:client-principal|token-aad)', 'x-pomerium-', 'x-authentik-', 'tailscale-user-',
  '(?:x-)?(?:remote|webauth)-(?:user|groups|name|email)', 'x-(?:consumer|authenticated)-',
  'x-(?:anonymous-consumer|credential-identifier|(?:(?:apigateway|endpoint)-api-)?userinfo|(?:raw-)?id-token)$',
  'x-amzn-(?:request|lambda)-context$',
].join('|')})`)

/** Headers by which other gateways, as an upstream may be one, take a secret. An upstream's own `headers` may have them. */
export const gatewayHeaders: readonly string[] = [
  'cf-aig-authorization', 'helicone-auth', 'x-litellm-api-key', 'x-portkey-api-key', 'x-portkey-config', 'x-portkey-virtual-key', 'x-bf-vk',
  'x-bf-direct-key', 'x-portkey-aws-secret-access-key', 'x-portkey-aws-session-token', 'x-portkey-azure-ad-token',
  'x-portkey-azure-entra-client-secret', 'x-portkey-vertex-service-account-json', 'helicone-fallbacks',
]

/**
 * Headers by which they take the name of a stored secret, an account, or an address, to which they would send the upstream's credential.
 * Bifrost, Cloudflare AI Gateway, Helicone, Portkey, which has some for each of its providers.
 */
export const gatewayChoices =
  /^(?:cf-aig-(?:byok-alias|gateway-id)|helicone-(?:target-url|openai-api-base)|x-bf-api-key|x-portkey-(?!trace|span|parent|meta|cache|debug|strict|\w+-(?:beta|version)$))/

/** Headers by which Azure chooses a model: the image model, and the deployment where several share one address. */
export const modelHeaders: readonly string[] = ['x-ms-oai-image-generation-deployment', 'azureml-model-deployment']

/** Headers by which callers choose who pays, and whose refusals no words of providers are known of. */
export const payerHeaders: readonly string[] = ['anthropic-workspace-id', 'x-hf-bill-to']
