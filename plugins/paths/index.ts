/**
 * Path normalization: whatever base address a client was given, its request reaches one canonical path (DESIGN 4).
 * Works in an app that this plugin did not create, beside any mount, registered before or after it.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { gatewayError } from '../core/errors/gateway-error.js'
import { refuse } from '../core/errors/refuse.js'
import { isDoubtful } from '../core/framing.js'
import { joinGateway } from '../core/gateway.js'
import { claimIdentifying, dropQueryKey, identify, readUrl } from '../core/identify.js'
import { refuseMisdirected } from '../core/refuse-url.js'
import type { Family } from '../protocols/types.js'
import { pathOf, withOneVersion } from '../core/url/single-version.js'
import { ModelCall } from '../core/model-call.js'
import { routeOf } from '../core/route-kind.js'
import { setAsideIllFormed } from './ill-formed.js'
import { checkPathOptions, type PathsOptions } from './options.js'
import type { Refused } from '../core/url/resolve.js'
import { takenRoutes } from './taken-routes.js'

export { createRewriteUrl, type RewriteUrlOptions } from './rewrite-url.js'
export type { PathsOptions } from './options.js'

async function paths (app: FastifyInstance, options: PathsOptions): Promise<void> {
  checkPathOptions('paths', options)
  const { prefix = '', unknown = 'refuse' } = options

  const gateway = joinGateway(app, prefix)

  // Their callers would see a 401 or 405 and nobody would know why.
  app.addHook('onReady', async () => {
    const routes = takenRoutes(app, gateway.prefix)
    if (routes.length > 0) app.log.warn({ routes }, 'these routes of the host are taken for model endpoints, whose paths clients send without a version, too: give the gateway a prefix')
  })

  setAsideIllFormed(app, gateway)
  claimIdentifying(app)
  app.addHook('onRequest', (request, reply, done) => {
    const { raw } = request
    const read = readUrl(gateway.resolve, raw)
    if (read === null) {
      if (isProbe(request)) reply.code(200).send()
      else done()
    } else if (!(read instanceof ModelCall)) {
      answerRefused(request, reply, read, done)
    } else if (isUpgrade(request)) {
      refuseUpgrade(request, reply, read.endpoint.family)
    } else if (raw.url !== read.url && pathOf(String(raw.url)) !== pathOf(read.url)) {
      raw.url = read.url
      // The host's hooks run to the end for this one, too.
      dropQueryKey(request)
      reply.hijack()
      app.routing(raw, reply.raw)
    } else {
      identify(gateway, request, reply)
      if (isDoubtful(raw)) refuse(request, reply, read.endpoint.family, gatewayError('bad_request', {}, { headers: { connection: 'close' } }))
      else {
        if (read.repair !== null) gateway.recorder.pathNormalized(read.protocol, read.repair)
        if (routeOf(read, request) === 'host' && 'from' in reply) sendWithOneVersion(reply, read)
        done()
      }
    }
  })

  function answerRefused (request: FastifyRequest, reply: FastifyReply, refused: Refused, done: () => void): void {
    // A host may serve such a path itself, or pass it to an upstream that has more endpoints than we know.
    const left = refused.code === 'unknown_url' && (unknown === 'leave' || !request.is404)
    if (refused.code === 'unknown_url' && isProbe(request)) reply.code(200).send()
    else if (left) done()
    else if (isUpgrade(request)) refuseUpgrade(request, reply, refused.family)
    else refuseMisdirected(request, reply, refused)
  }
}

/** For a mount that nobody adapted: only itself knows where it sends a request, at the moment when it does. */
function sendWithOneVersion (reply: FastifyReply, { url, mountLength }: ModelCall): void {
  const from = reply.from.bind(reply)
  reply.from = (source, options) => from(source === undefined ? undefined : withOneVersion(source, url.slice(mountLength)), options)
}

function refuseUpgrade (request: FastifyRequest, reply: FastifyReply, family: Family): void {
  refuse(request, reply, family, gatewayError('upgrade_required', {}, { headers: { upgrade: 'HTTP/1.1' } }))
}

/** `HEAD /` without credentials is how some clients ask whether anybody is there (facts/protocols.md 1). */
function isProbe (request: FastifyRequest): boolean {
  return request.method === 'HEAD' && request.is404 && /^\/(?:v1(?:beta)?)?\/?$/.test(pathOf(String(request.raw.url)))
}

/** Any other upgrade, such as the `h2c` that some HTTP libraries offer with each first request, is one to ignore. */
function isUpgrade ({ headers }: FastifyRequest): boolean {
  return headers.upgrade !== undefined && /websocket/i.test(headers.upgrade) && /(?:^|[\s,])upgrade(?:$|[\s,])/i.test(String(headers.connection))
}

export default fp(paths, { fastify: '5.x', name: 'llm-gateway-paths' })
export { paths }
