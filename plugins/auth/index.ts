/** Credential -> digest -> key -> group, before the body is read (docs/security.md). */
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import type { GatewayError } from '../core/errors/gateway-error.js'
import { refuse } from '../core/errors/refuse.js'
import { dropCredentials } from '../core/door/carriers.js'
import { meet } from '../core/door/door.js'
import { joinGateway, type Gateway } from '../core/gateway.js'
import { gatewayPlugin } from '../core/gateway-plugin.js'
import { refuseOutside, refuseSecond } from '../core/host/gateway-scope.js'
import { modelCallOf, type ModelCall } from '../core/call/model-call.js'
import { unguardedMount } from '../core/config/options.js'
import { routeOf } from '../core/call/route-kind.js'
import { checkModel } from './access.js'
import { Authenticator } from './authenticator.js'
import type { AuthOptions } from './options.js'
import { watchMounts } from './other-mounts.js'
import { startWarnings } from './start-warnings.js'

export type { GroupOptions } from './groups.js'
export type { KeyOptions } from './keys.js'
export type { AuthOptions, KeySource, Lookup, LookupKey } from './options.js'

async function registerAuth (app: FastifyInstance, options: AuthOptions): Promise<void> {
  refuseSecond(app)
  const gateway = joinGateway(app)
  refuseOutside(app, gateway)
  const authenticator = new Authenticator(options, gateway)
  refuseUnguarded(app, gateway)
  publish(gateway, authenticator, options)
  const endings = [options.store?.onChange(gateway.invalidateKeys)]
  app.addHook('onClose', async () => endings.forEach((end) => end?.()))
  const warnings = startWarnings(app, options)
  const openMounts = watchMounts(app, gateway)
  // Not before all plugins are there: the recorder may be registered after this one.
  app.addHook('onReady', async () => {
    for (const warning of [...warnings(), ...openMounts()]) app.log.warn(warning)
    endings.push(gateway.recorder.gauge('key_cache_entries', () => {
      return Object.entries(authenticator.cacheSizes).map(([kind, value]) => ({ labels: { kind }, value }))
    }))
  })
  guard(app, gateway, authenticator)
}

/** Tells the other plugins what they may need to know of keys and groups. */
function publish (gateway: Gateway, authenticator: Authenticator, { store, unknown = 'refuse' }: AuthOptions): void {
  gateway.unknown.mounts = unknown
  gateway.guarded = true
  gateway.namesUpstreams = authenticator.namesUpstreams
  gateway.parties = authenticator.parties
  gateway.issuedKeys = store?.list?.bind(store) ?? null
  gateway.invalidateKeys = (change) => authenticator.invalidate(change)
}

/** Asks each model request for its key before its body is read, and checks its model once the body is known. */
function guard (app: FastifyInstance, gateway: Gateway, authenticator: Authenticator): void {
  app.addHook('onRequest', function llmGatewayAuth (request, reply, done) {
    meet(gateway, request, reply, ask, done)
  })

  app.addHook('preHandler', function llmGatewayAuth (request, reply, done) {
    const llm = modelCallOf(request)
    if (llm === null) {
      done()
      return
    }
    if (routeOf(llm, request) === 'host') dropCredentials(request.raw.headers)
    const verdict = checkModel(llm, request.raw.headers)
    llm.auth.admitted = verdict === null
    conclude(gateway, verdict, llm, reply, done)
  })

  function ask (llm: ModelCall, request: FastifyRequest, reply: FastifyReply, passed: () => void): void {
    const verdict = authenticator.check(llm, request)
    if (verdict instanceof Promise) verdict.then((later) => conclude(gateway, later, llm, reply, passed))
    else conclude(gateway, verdict, llm, reply, passed)
  }
}

/** Lets the request go on where there is no refusal; else answers it. */
function conclude (
  { recorder }: Gateway, refusal: GatewayError | null, llm: ModelCall, reply: FastifyReply, passed: () => void
): void {
  // The caller left while its key was looked up. A reply of HTTP/2 does not tell.
  if (llm.settled) return
  if (refusal === null) {
    llm.auth.passed = true
    passed()
    return
  }
  if (refusal.outcome === 'auth_error' || refusal.code === 'too_many_auth_failures') recorder.authFailed(llm.protocol, refusal.code)
  refuse(reply, llm.endpoint.family, refusal)
}

/**
 * Fails the start if a mount, registered from now on, spreads `proxyOptions()` and nothing below it would ever count as a model
 * request: its callers would get 404 for everything. Throws `LLM_GATEWAY_OPTION`.
 */
function refuseUnguarded (app: FastifyInstance, gateway: Gateway): void {
  const adapted: string[] = []
  app.addHook('onRoute', ({ url, config }) => {
    if (config?.llm === 'proxy' && url.endsWith('*')) adapted.push(url)
  })
  app.addHook('onReady', async () => {
    const open = adapted.find((pattern) => !gateway.mounts.guards(pattern))
    if (open !== undefined) throw unguardedMount(open)
  })
}

/** Who calls: 401 for a wrong or missing credential, 403 for what its group does not allow, 503 where keys cannot be checked. */
export const auth: FastifyPluginAsync<AuthOptions> = gatewayPlugin('auth', registerAuth)
