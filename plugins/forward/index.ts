import { performance } from 'node:perf_hooks'
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { collectBody, declaredLength } from '../core/body/collect-body.js'
import { gatewayError } from '../core/errors/gateway-error.js'
import { nativeErrorHandler } from './error-handler.js'
import { refuse } from '../core/errors/refuse.js'
import { isLetIn, joinGateway, type Gateway } from '../core/gateway.js'
import { gatewayPlugin } from '../core/gateway-plugin.js'
import { identifyFirst, refusalOf } from '../core/call/identify.js'
import { refuseUrl } from '../core/door/refuse-url.js'
import { modelCallOf, type ModelCall } from '../core/call/model-call.js'
import { checkMounts, skipDestinations } from './adapted-mounts.js'
import { UpstreamDispatcher } from './dispatcher.js'
import { given, OptionError } from '../core/config/options.js'
import { checkTransport, withTransportDefaults, type ForwardOptions } from './options.js'
import { relay } from './relay.js'
import { routeAddresses } from './routes.js'

export { proxyOptions, type HttpProxyOptions, type ProxyOptions } from './proxy-options.js'
export type { ForwardOptions, TransportOptions } from './options.js'

async function registerForward (app: FastifyInstance, options: ForwardOptions & { prefix?: string }): Promise<void> {
  const { prefix = '', ...own } = options
  checkTransport('forward', own, ['routes'])
  const { routes = true, ...transport } = own
  const unread = routes ? [] : Object.keys(given(transport))
  if (unread.length > 0) app.log.warn(`with routes: false nothing reads ${unread.join(', ')}: give them to proxyOptions() of your mount`)
  const gateway = joinGateway(app, prefix)
  const dispatcher = new UpstreamDispatcher(withTransportDefaults(transport))
  gateway.transports.add(dispatcher)
  // Waited for, where reply-from does not: a reply whose caller has left is still read for its usage.
  app.addHook('onClose', async () => {
    await Promise.all([...gateway.transports].map(async (transport) => await transport.destroy()))
  })
  checkMounts(app, gateway)
  skipDestinations(app)
  if (!routes) return
  await app.register(async function mount (scope) { mountRoutes(scope, gateway, dispatcher) })
  app.addHook('onReady', async () => {
    const isNone = gateway.upstreamsStatus().upstreams.length === 0
    if (isNone) throw new OptionError('forward.routes', 'needs the plugin upstreams with an upstream')
    if (!gateway.guarded) app.log.warn('without the plugin auth whoever reaches these routes uses the credentials of the upstreams')
  })
}

/** A route for every endpoint, in a scope of their own, so that no parser and no error handler of the host's is theirs. */
function mountRoutes (scope: FastifyInstance, gateway: Gateway, dispatcher: UpstreamDispatcher): void {
  gateway.ownScope = scope
  scope.setErrorHandler(nativeErrorHandler)
  identifyFirst(scope, gateway)
  scope.removeAllContentTypeParsers()
  // By name, too: the framework looks a catch-all up anew for each request.
  scope.addContentTypeParser(['application/json', '*'], (request, payload, done) => readBody(gateway, request, payload, done))
  const place = scope.prefix.replace(/\/+$/, '')
  for (const { method, url } of routeAddresses(gateway.prefix)) {
    // A scope that ends in a version has no place for the endpoints of another one.
    if (!url.startsWith(`${place}/`)) continue
    scope.route({
      method: method === 'GET' ? ['GET', 'HEAD'] : method,
      url: url.slice(place.length),
      exposeHeadRoute: false,
      config: { llm: 'own' },
      handler: llmGatewayForward,
    })
  }

  // Returns nothing: for a reply that is returned, the framework listens to the whole exchange once more.
  function llmGatewayForward (request: FastifyRequest, reply: FastifyReply): void {
    const llm = modelCallOf(request)
    const refusal = llm === null ? refusalOf(gateway, request) : null
    if (llm !== null) forwardCall(gateway, dispatcher, llm, request, reply)
    else if (refusal !== null) refuseUrl(gateway, request, reply, refusal)
    else reply.callNotFound()
  }
}

function forwardCall (
  gateway: Gateway, dispatcher: UpstreamDispatcher, llm: ModelCall, request: FastifyRequest, reply: FastifyReply
): void {
  const destination = gateway.destinationOf(llm)
  if (destination === null || !isLetIn(gateway, llm)) refuse(reply, llm.endpoint.family, gatewayError('internal_error'))
  else relay(dispatcher, { gateway, llm, request, reply, destination, streamOnly: false, rewriteHeaders: null })
}

type BodyDone = (error: Error | null, body?: Buffer | null) => void

/** Collects the body of one of our own routes. Validation checks it later. */
function readBody (gateway: Gateway, request: FastifyRequest, payload: FastifyRequest['raw'], done: BodyDone): void {
  const llm = modelCallOf(request)
  if (llm === null) {
    done(null)
    return
  }
  llm.times.bodyStartedAt = performance.now()
  collectBody(payload, declaredLength(request.headers['content-length']), llm, (error, body) => {
    llm.body.bytes = body
    llm.times.bodyAt = performance.now()
    done(error, body)
  }, gateway)
}

/**
 * Forwards requests to the upstream: the same bytes, one provider credential, cancelled when the caller leaves (docs/architecture.md).
 * Mounts a route for every endpoint; hosts that mount `@fastify/http-proxy` themselves spread `proxyOptions()` instead.
 */
export const forward: FastifyPluginAsync<ForwardOptions & { prefix?: string }> = gatewayPlugin('forward', registerForward)
