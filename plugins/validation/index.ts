/**
 * Bytes -> JSON -> schema: 415 for anything but plain JSON (or a form, where allowed), 413 above the maximum size, 400 for what does not
 * parse or lacks what the endpoint needs. The body is never changed. This runs between authentication and the host's own body parsers,
 * whatever order plugins were registered in.
 */
import { AsyncResource } from 'node:async_hooks'
import { performance } from 'node:perf_hooks'
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest, RequestPayload } from 'fastify'
import { collectBody, declaredLength } from '../core/body/collect-body.js'
import { refuse } from '../core/errors/refuse.js'
import { gatewayOf, joinGateway } from '../core/gateway.js'
import { gatewayPlugin } from '../core/gateway-plugin.js'
import { identifyFirst, refusalOf } from '../core/call/identify.js'
import { refuseUrl } from '../core/door/refuse-url.js'
import { modelCallOf, type ModelCall } from '../core/call/model-call.js'
import { routeOf } from '../core/call/route-kind.js'
import { isUnknown } from '../core/url/refusal.js'
import { writeLog } from '../core/write-log.js'
import { checkQuery } from './check-body.js'
import { Checker } from './checker.js'
import { readMediaType } from './media-type.js'
import { readOptions, type Rules, type ValidationOptions } from './options.js'
import { replay } from './replay.js'
import { BodyRefusal } from './body-refusal.js'

export type { ValidationOptions } from './options.js'
export type { SchemaSource } from './schemas.js'

const nothing = Buffer.alloc(0)

type Next = (error?: null, payload?: RequestPayload) => void

async function registerValidation (app: FastifyInstance, options: ValidationOptions): Promise<void> {
  const gateway = joinGateway(app)
  const rules = readOptions(options)
  const onTrouble = (err: unknown): void => writeLog(app.log, 'error', { err }, 'a request body could not be checked')
  const checker = new Checker(rules, onTrouble, () => gateway.renamesModels)
  gateway.bodyPace = checker.threads
  app.addHook('onClose', async () => await checker.threads.close())

  identifyFirst(app, gateway)

  app.addHook('preParsing', function llmGatewayValidation (request, reply, payload, done) {
    const llm = modelCallOf(request)
    if (llm === null) {
      const refusal = refusalOf(gateway, request)
      if (refusal === null || isUnknown(refusal)) done()
      else refuseUrl(gateway, request, reply, refusal)
    } else if (llm.endpoint.body === 'none') {
      done()
    } else {
      beforeBody({ rules, checker }, llm, request, reply, payload, done)
    }
  })

  // A route of this package has the bytes from its own parser; nothing reads them before this hook.
  app.addHook('preValidation', function llmGatewayValidation (request, reply, done) {
    const llm = modelCallOf(request)
    if (llm === null || llm.endpoint.body === 'none' || routeOf(llm, request) !== 'own') {
      done()
      return
    }
    follow(checker.check(llm, request.headers, bodyOf(llm)), llm, reply, () => {
      // A large body was sent to a thread and back, and is another object now.
      request.body = llm.body.bytes
      done()
    })
  })
}

interface Parts {
  readonly rules: Rules
  readonly checker: Checker
}

function beforeBody (
  parts: Parts, llm: ModelCall, request: FastifyRequest, reply: FastifyReply, payload: RequestPayload, done: Next
): void {
  llm.body.maxBytes = parts.rules.maxBodyBytesOf(llm.endpoint.id)
  const type = readMediaType(llm.endpoint, request.headers)
  const refusal = type instanceof BodyRefusal ? type : type.kind === 'form' ? checkQuery(llm) : null
  if (refusal !== null) refuseBody(llm, reply, refusal)
  else if (routeOf(llm, request) === 'own') done()
  else takeBody(parts.checker, llm, request, reply, payload, done)
}

/** Reads and checks the body of a host's mount, and passes the same bytes to the mount's own parser. */
function takeBody (
  checker: Checker, llm: ModelCall, request: FastifyRequest, reply: FastifyReply, payload: RequestPayload, done: Next
): void {
  const { headers } = request
  // Body events run in the connection's async context; the hooks after this one must run in the request's.
  const scope = new AsyncResource('llm-gateway.body')
  llm.times.bodyStartedAt = performance.now()
  collectBody(payload, declaredLength(headers['content-length']), llm, (error, body) => {
    llm.times.bodyAt = performance.now()
    if (error !== null) {
      refuse(reply, llm.endpoint.family, error)
      return
    }
    llm.body.bytes = body
    follow(checker.check(llm, headers, body), llm, reply, () => {
      // It was answered here, and undici refuses to pass it on.
      if (headers.expect !== undefined) delete headers.expect
      scope.runInAsyncScope(done, null, null, replay(bodyOf(llm)))
    })
  }, gatewayOf(request.server))
}

/** Continues with a valid body, at once or as soon as the check is done. */
function follow (
  verdict: BodyRefusal | null | Promise<BodyRefusal | null>, llm: ModelCall, reply: FastifyReply, goOn: () => void
): void {
  if (verdict === null) goOn()
  else if (verdict instanceof BodyRefusal) refuseBody(llm, reply, verdict)
  else {
    verdict.then((later) => {
      // If the caller left during the check, its request is settled, and is not continued.
      if (!llm.settled) follow(later, llm, reply, goOn)
    })
  }
}

function bodyOf ({ body }: ModelCall): Buffer {
  return body.bytes ?? nothing
}

function refuseBody (llm: ModelCall, reply: FastifyReply, { keyword, error }: BodyRefusal): void {
  gatewayOf(reply.server).recorder.validationFailed(llm.protocol, keyword)
  refuse(reply, llm.endpoint.family, error)
}

/** Checks request bodies against what their endpoint needs, before anything is sent: 415, 413 or 400 (docs/configuration.md). */
export const validation: FastifyPluginAsync<ValidationOptions> = gatewayPlugin('validation', registerValidation)
