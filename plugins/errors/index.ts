import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { joinGateway } from '../core/gateway.js'
import { gatewayPlugin } from '../core/gateway-plugin.js'
import { parseJson } from '../core/body/parse-json.js'
import { identify, identifyFirst } from '../core/call/identify.js'
import { ModelCall, modelCallOf } from '../core/call/model-call.js'
import { errorText } from '../core/errors/gateway-error.js'
import { fromForeign } from '../core/errors/foreign.js'
import { setErrorHead } from '../core/errors/refuse.js'
import { checkOptions } from '../core/config/options.js'

async function registerErrors (app: FastifyInstance, options: Readonly<Record<never, never>>): Promise<void> {
  checkOptions('errors', options, {})
  const gateway = joinGateway(app)

  // Replies that failed, whatever they were to be before: for example one that a mount's upstream broke off before its first byte.
  const failed = new WeakSet<FastifyReply>()

  identifyFirst(app, gateway)

  app.addHook('onError', function llmGatewayErrors (request, reply, _error, done) {
    // What breaks because its caller left is no failure, and there is nobody to answer.
    if (modelCallOf(request)?.abortedBy !== 'client') failed.add(reply)
    done()
  })

  app.addHook('onSend', function llmGatewayErrors (request, reply, payload, done) {
    const foreign = foreignError(failed.has(reply) ? null : modelCallOf(request), reply, payload)
    // A hook of the host may have failed before any of ours ran.
    const llm = foreign === null ? modelCallOf(request) : identify(gateway, request, reply)
    if (!(llm instanceof ModelCall)) {
      done(null, payload)
      return
    }
    if (!reply.hasHeader('x-request-id')) reply.header('x-request-id', llm.id)
    if (!reply.hasHeader('request-id')) reply.header('request-id', reply.getHeader('x-request-id'))
    done(null, foreign === null ? payload : native(llm, request, reply, foreign))
  })
}

/**
 * An error that Fastify rendered, null for any other payload: ours are recognised by their code, an upstream's by its status, and a host's
 * own format is left alone. `llm`: null if the reply is known to be Fastify's.
 */
function foreignError (llm: ModelCall | null, reply: FastifyReply, payload: unknown): object | null {
  if (reply.statusCode < 400) return null
  if (llm !== null && (llm.errorCode !== null || llm.upstreamReply.status !== 0)) return null
  if (typeof payload !== 'string' || !/^\{"(?:statusCode|message)":/.test(payload)) return null
  const error: object = Object(parseJson(payload))
  const { statusCode, error: name, message } = Object(error)
  return statusCode === reply.statusCode && typeof name === 'string' && typeof message === 'string' ? error : null
}

function native (llm: ModelCall, request: FastifyRequest, reply: FastifyReply, foreign: object): string {
  const error = fromForeign(foreign, request, reply.statusCode)
  llm.errorCode ??= error.code
  llm.outcome ??= error.outcome
  const body = errorText(llm.endpoint.family, error, llm.id)
  setErrorHead(reply, error, llm.id)
  reply.header('content-length', Buffer.byteLength(body))
  return body
}

/**
 * Makes every failure on a model route use the error format of the caller's protocol, in place of the formats of Fastify, a host's mount or
 * a silent upstream (docs/errors.md). Also adds the request ids to every reply.
 */
export const errors: FastifyPluginAsync = gatewayPlugin('errors', registerErrors)
