/**
 * Who calls: credential -> digest -> key -> group, before the body is read (DESIGN 5). 401 for a wrong or missing
 * credential, 403 for what its group does not allow, 503 where keys cannot be checked.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { refuse } from '../core/errors/refuse.js'
import { joinGateway, refuseOutside, refuseSecond } from '../core/gateway.js'
import { identify } from '../core/identify.js'
import { refuseMisdirected } from '../core/refuse-url.js'
import { ModelCall, modelCallOf } from '../core/model-call.js'
import { routeOf } from '../core/route-kind.js'
import { checkModel } from './access.js'
import { Authenticator, type Verdict } from './authenticator.js'
import { ModelMounts } from './model-mounts.js'
import type { AuthOptions } from './options.js'
import { dropCredentials } from './strip.js'

export type { GroupOptions, KeyOptions } from './groups.js'
export type { AuthOptions, KeySource, Lookup, LookupKey } from './options.js'

async function auth (app: FastifyInstance, options: AuthOptions): Promise<void> {
  refuseSecond(app)
  const gateway = joinGateway(app)
  refuseOutside(app, gateway)
  const authenticator = new Authenticator(options, gateway)
  const mounts = new ModelMounts(app, gateway)
  mounts.refuseUnguarded()
  gateway.guards = (pattern) => mounts.guards(pattern)
  gateway.guarded = true
  gateway.invalidateKeys = (change) => authenticator.invalidate(change)
  const endings = [options.store?.onChange(gateway.invalidateKeys)]
  app.addHook('onClose', async () => endings.forEach((end) => end?.()))
  // Not before all plugins are there: the recorder may be registered after this one.
  app.addHook('onReady', async () => {
    endings.push(gateway.recorder.gauge('key_cache_entries', () => {
      return Object.entries(authenticator.cacheSizes).map(([kind, value]) => ({ labels: { kind }, value }))
    }))
  })

  app.addHook('onRequest', (request, reply, done) => {
    const llm = identify(gateway, request, reply)
    if (llm === null || (llm instanceof ModelCall && llm.authenticated)) {
      done()
    } else if (llm instanceof ModelCall) {
      const verdict = authenticator.check(llm, request)
      if (verdict instanceof Promise) verdict.then((later) => conclude(later, llm, request, reply, done))
      else conclude(verdict, llm, request, reply, done)
    } else if (llm.code === 'unknown_url' && isLeft(request)) {
      done()
    } else {
      refuseMisdirected(request, reply, llm)
    }
  })

  app.addHook('preHandler', (request, reply, done) => {
    const llm = modelCallOf(request)
    if (llm === null) {
      done()
      return
    }
    if (routeOf(llm, request) === 'host') dropCredentials(request.raw.headers)
    conclude(checkModel(llm), llm, request, reply, done)
  })

  /** A path that no endpoint has may be a route of the host; it must not reach a provider unguarded. */
  function isLeft (request: FastifyRequest): boolean {
    const { url, config } = request.routeOptions
    return options.unknown === 'leave' || url === undefined || config.llm !== undefined || !mounts.has(url)
  }

  function conclude (verdict: Verdict, llm: ModelCall, request: FastifyRequest, reply: FastifyReply, done: () => void): void {
    // The caller left while its key was looked up.
    if (reply.raw.destroyed) return
    if (verdict === null) {
      llm.authenticated = true
      done()
      return
    }
    if (verdict.outcome === 'auth_error') gateway.recorder.authFailed(llm.protocol, verdict.code)
    refuse(request, reply, llm.endpoint.family, verdict)
  }
}

export default fp(auth, { fastify: '5.x', name: 'llm-gateway-auth' })
export { auth }
