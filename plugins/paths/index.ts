/**
 * Path normalization: whatever base address a client was given, its request reaches one canonical path (DESIGN 4).
 * Works in an app that this plugin did not create, beside any mount, registered before or after it.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { gatewayError } from '../errors/gateway-error.js'
import { checkOptions, OptionError } from '../errors/options.js'
import { refuse } from '../errors/refuse.js'
import { readUrl } from '../identify.js'
import { refuseMisdirected } from '../misdirected.js'
import { LlmRequest, beginRequest, joinGateway } from '../request.js'
import { createResolve, type Refused } from './resolve.js'

export { createRewriteUrl, type RewriteUrlOptions } from './rewrite-url.js'

export interface PathsOptions {
  /** Path below which the model endpoints stand, such as `/llm`. Default: none. */
  prefix?: string
  /**
   * What happens to a path that has a version segment (or the prefix) but is no known endpoint and no route of the host:
   * `leave` it to the host's 404, or `refuse` it with the native 404 of the caller's protocol. Default `refuse`.
   */
  unknown?: 'leave' | 'refuse'
}

async function paths (app: FastifyInstance, options: PathsOptions): Promise<void> {
  checkOptions('paths', options, { prefix: 'anything', unknown: 'anything' })
  const { prefix = '', unknown = 'refuse' } = options
  if (typeof prefix !== 'string' || !/^(?:\/[\w.~-]+)*\/?$/.test(prefix)) throw new OptionError('paths.prefix', 'must be a path such as /llm')
  if (unknown !== 'leave' && unknown !== 'refuse') throw new OptionError('paths.unknown', 'must be leave or refuse')

  const gateway = joinGateway(app)
  gateway.resolve = createResolve(prefix)

  app.addHook('onRequest', (request, reply, done) => {
    const { raw } = request
    const read = readUrl(gateway.resolve, raw)
    // Contexts that the host made before this package was registered do not have the decorator's null.
    request.llm ??= null
    if (read === null) {
      if (isProbe(request)) reply.code(200).send()
      else done()
      return
    }
    if (isUpgrade(request)) {
      const family = read instanceof LlmRequest ? read.endpoint.family : read.family
      refuse(request, reply, family, gatewayError('upgrade_required', {}, { headers: { upgrade: 'HTTP/1.1' } }))
      return
    }
    if (!(read instanceof LlmRequest)) {
      answerRefused(request, reply, read, done)
      return
    }
    const moved = pathOf(raw.url ?? '') !== pathOf(read.url)
    raw.url = read.url
    if (moved) {
      reply.hijack()
      app.routing(raw, reply.raw)
      return
    }
    if (read.queryKeys !== null) dropQueryKey(request)
    beginRequest(gateway, request, reply, read)
    if (read.repair !== null) gateway.recorder.pathNormalized(read.protocol, read.repair)
    done()
  })

  function answerRefused (request: FastifyRequest, reply: FastifyReply, refused: Refused, done: () => void): void {
    request.raw.url = refused.url
    if (refused.code === 'unknown_url') {
      if (isProbe(request)) {
        reply.code(200).send()
        return
      }
      // A host may serve such a path itself, or pass it to an upstream that has more endpoints than we know.
      if (unknown === 'leave' || !request.is404) {
        done()
        return
      }
    }
    refuseMisdirected(request, reply, refused)
  }
}

/** `HEAD /` without credentials is how some clients ask whether anybody is there (facts/protocols.md 1). */
function isProbe (request: FastifyRequest): boolean {
  return request.method === 'HEAD' && request.is404 && /^\/(?:v1(?:beta)?)?\/?$/.test(pathOf(request.raw.url ?? ''))
}

function isUpgrade (request: FastifyRequest): boolean {
  return request.headers.upgrade !== undefined && /(?:^|[\s,])upgrade(?:$|[\s,])/i.test(request.headers.connection ?? '')
}

function pathOf (url: string): string {
  const mark = url.indexOf('?')
  return mark < 0 ? url : url.slice(0, mark)
}

function dropQueryKey (request: FastifyRequest): void {
  const { query } = request
  if (typeof query === 'object' && query !== null && 'key' in query) delete query.key
}

export default fp(paths, { fastify: '5.x', name: 'llm-gateway-paths' })
export { paths }
