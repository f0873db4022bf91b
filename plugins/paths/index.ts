import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { isSocketUpgrade } from '../core/door/arrival.js'
import { meet } from '../core/door/door.js'
import { gatewayError } from '../core/errors/gateway-error.js'
import { refuse } from '../core/errors/refuse.js'
import { hasDoubtfulFraming } from '../core/door/framing.js'
import { joinGateway } from '../core/gateway.js'
import { gatewayPlugin } from '../core/gateway-plugin.js'
import { claimIdentifying, dropQueryKeys, identify, readUrl } from '../core/call/identify.js'
import { withoutQuery } from '../core/url/query.js'
import { ModelCall } from '../core/call/model-call.js'
import { setAsideIllFormed } from './ill-formed.js'
import { checkPathOptions, type PathsOptions } from './options.js'
import { takenRoutes } from './taken-routes.js'

export { createRewriteUrl, type RewriteUrlOptions } from './rewrite-url.js'
export type { PathsOptions } from './options.js'

async function registerPaths (app: FastifyInstance, options: PathsOptions): Promise<void> {
  checkPathOptions('paths', options)
  const { prefix = '', unknown = 'refuse' } = options

  const gateway = joinGateway(app, prefix)

  // Otherwise their callers would get a 401 or 405 for no visible reason.
  app.addHook('onReady', async () => {
    const routes = takenRoutes(app, gateway.prefix)
    if (routes.length > 0) {
      app.log.warn(
        { routes },
        'these routes of the host are taken for model endpoints, whose paths clients send without a version, too: give the gateway a prefix'
      )
    }
  })

  setAsideIllFormed(app, gateway)
  gateway.unknown.nowhere = unknown
  claimIdentifying(app)
  app.addHook('onRequest', function llmGatewayPaths (request, reply, done) {
    const { raw } = request
    const read = readUrl(gateway.resolve, raw)
    if (read instanceof ModelCall && !isSocketUpgrade(request)) {
      if (raw.url !== read.url && withoutQuery(String(raw.url)) !== withoutQuery(read.url)) {
        routeAgain(app, read, request, reply)
        return
      }
      identify(gateway, request, reply)
      if (hasDoubtfulFraming(raw)) {
        refuse(reply, read.endpoint.family, gatewayError('bad_request', {}, { headers: { connection: 'close' } }))
        return
      }
      if (read.repair !== null) gateway.recorder.pathNormalized(read.protocol, read.repair)
    }
    meet(gateway, request, reply, null, done)
  })
}

/** Routes the request again, by its canonical path. */
function routeAgain (app: FastifyInstance, { url }: ModelCall, request: FastifyRequest, reply: FastifyReply): void {
  request.raw.url = url
  // The host's hooks run to the end for this pass, too.
  dropQueryKeys(request)
  reply.hijack()
  app.routing(request.raw, reply.raw)
}

/**
 * Path normalization: whatever base address a client was given, its request reaches one canonical path (docs/clients.md). Works in an app
 * that this plugin did not create, beside any mount, registered before or after it.
 */
export const paths: FastifyPluginAsync<PathsOptions> = gatewayPlugin('paths', registerPaths)
