/** Makes a Fastify app that serves a validated configuration. A reload makes a second one beside it. */
import { randomUUID } from 'node:crypto'
import Fastify, { LogController, type FastifyInstance, type FastifyReply, type FastifyRequest, type FastifyServerOptions } from 'fastify'
import { gatewayError } from '../core/errors/gateway-error.js'
import { refuse } from '../core/errors/refuse.js'
import { hasDoubtfulFraming } from '../core/door/framing.js'
import { gatewayOf, joinGateway } from '../core/gateway.js'
import { identify, knownRequest } from '../core/call/identify.js'
import { ModelCall } from '../core/call/model-call.js'
import { refuseUrl, unknownUrl } from '../core/door/refuse-url.js'
import { withoutQuery } from '../core/url/query.js'
import llmGateway from '../index.js'
import { createRewriteUrl } from '../paths/index.js'
import { familyOf } from '../protocols/index.js'
import { bundleOptions, type Shared } from './bundle-options.js'
import type { GatewayConfig } from './config-types.js'
import { allowOrigins } from './cors.js'
import { lateOptions, type LateLine } from './late-lines.js'
import { LiveRequests } from './live-requests.js'
import type { ProcessPeers } from './process-peers.js'
import { unitWarnings } from './unit-warnings.js'

export interface RunningGateway {
  readonly app: FastifyInstance
  readonly live: LiveRequests
  /** Marks it as replaced by another app. */
  readonly retire: () => void
}

export interface LogStream {
  write: (line: string) => void
  /** Takes a line whose text is made later, and before that of any line after it. */
  late?: (line: LateLine) => void
  /** Sets the listener that counts each line that could not be written. */
  onDrop?: (listener: () => void) => void
}

export interface GatewayParts extends Shared {
  /** The other processes of this gateway. */
  readonly peers?: ProcessPeers | undefined
  /** `draining` is true once the process is to end: new model requests are refused, running ones continue. */
  readonly life: { readonly draining: boolean }
  /** Where log lines go; default stdout. */
  readonly logStream?: LogStream | undefined
}

/** Resolves when every plugin is ready; throws a plugin's error, such as `LLM_GATEWAY_OPTION`. */
export async function createGateway (config: GatewayConfig, parts: GatewayParts): Promise<RunningGateway> {
  const app = Fastify(serverOptions(config, parts))
  const live = new LiveRequests()
  if (config.cors !== undefined) await allowOrigins(app, config.cors)
  joinGateway(app).shared = parts.cells
  watchLife(app, live, parts.life)
  app.register(llmGateway, bundleOptions(config, parts))
  app.get('/', async () => ({ name: 'llm-gateway' }))
  app.get('/health', async (_, reply) => {
    // Caches in front keep what says nothing of it, some of them for an hour.
    reply.header('cache-control', 'no-store')
    return parts.life.draining ? reply.code(503).send({ status: 'draining' }) : { status: 'ok' }
  })
  app.setNotFoundHandler(notFound)
  await up(app)
  for (const warning of unitWarnings(config)) app.log.warn(warning)
  const gateway = gatewayOf(app)
  const { peers } = parts
  if (peers !== undefined) {
    peers.joinUpstreams(() => gateway.upstreamsStatus())
    gateway.otherUpstreams = async () => await peers.upstreams()
  }
  parts.logStream?.onDrop?.(() => gateway.recorder.logDropped())
  return { app, live, retire: () => { gateway.isReplaced = true } }
}

/** Answers what nothing serves: no path is a host's here, and Fastify's own message would repeat the query. */
function notFound (request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return refuseUrl(gatewayOf(request.server), request, reply, unknownUrl(request))
}

/** Refuses what cannot be read, in the envelope that its headers indicate. */
function refuseUnread (request: FastifyRequest, reply: FastifyReply, status: number): void {
  const error = gatewayError('bad_request', {}, { status, headers: { connection: 'close' } })
  refuse(reply, familyOf({ headers: request.headers }), error)
}

/** An app that fails to start is closed. */
async function up (app: FastifyInstance): Promise<void> {
  try {
    await app.ready()
  } catch (error) {
    await app.close()
    throw error
  }
}

function serverOptions (config: GatewayConfig, { logStream }: GatewayParts): FastifyServerOptions {
  const late = lateOptions(logStream)
  return {
    // Takes the caller's key out of the URL before anything can log it.
    rewriteUrl: createRewriteUrl({ prefix: config.prefix ?? '' }),
    ...config.listen?.trustProxy && { trustProxy: config.listen.trustProxy },
    // For a model request, the id that its caller sees.
    genReqId: (raw) => knownRequest(raw)?.id ?? randomUUID(),
    // Fastify's own message for a path that its router cannot decode would repeat the URL.
    frameworkErrors: ({ statusCode = 400 }, request, reply) => refuseUnread(request, reply, statusCode),
    // Otherwise Fastify loads its own compilers, a twentieth of every start.
    schemaController: { compilersFactory: { buildValidator: noCompiler, buildSerializer: noCompiler } },
    // In place of Fastify's two lines, which contain a URL, one line describes the model request.
    logController: new LogController({ disableRequestLogging: true }),
    logger: {
      level: config.log?.level ?? 'info',
      serializers: { req: ({ method, url }) => ({ method, url: withoutQuery(url) }) },
      ...logStream && { stream: logStream },
      ...late.logger,
    },
    ...late.app,
  }
}

/** For the schemas of routes: the gateway's have none. */
export function noCompiler (): never {
  throw new TypeError('no route of the gateway has a schema')
}

/** Registered before every other hook: it knows each running request, and refuses new ones while the process ends. */
function watchLife (app: FastifyInstance, live: LiveRequests, life: GatewayParts['life']): void {
  const gateway = joinGateway(app)
  gateway.settlement.onSettled((llm) => live.delete(llm))
  app.addHook('onRequest', function llmGatewayLife (request, reply, done) {
    const llm = identify(gateway, request, reply)
    if (!(llm instanceof ModelCall)) {
      if (hasDoubtfulFraming(request.raw)) refuseUnread(request, reply, 400)
      else done()
      return
    }
    live.add(llm)
    if (life.draining) refuse(reply, llm.endpoint.family, gatewayError('shutting_down', {}, { headers: { connection: 'close' } }))
    else done()
  })
}
