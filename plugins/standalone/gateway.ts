/** A validated configuration -> a Fastify app of its own that serves it. A reload makes a second one beside it. */
import { randomUUID } from 'node:crypto'
import Fastify, { LogController, type FastifyInstance, type FastifyServerOptions } from 'fastify'
import { gatewayError } from '../errors/gateway-error.js'
import { refuse } from '../errors/refuse.js'
import { identify } from '../identify.js'
import llmGateway from '../index.js'
import { createRewriteUrl } from '../paths/index.js'
import { LlmRequest, joinGateway } from '../request.js'
import { bundleOptions, type Shared } from './bundle-options.js'
import type { GatewayConfig } from './config-types.js'
import { LiveRequests } from './live-requests.js'
import { logRequest } from './request-log.js'

export interface Gateway {
  readonly app: FastifyInstance
  readonly live: LiveRequests
}

export interface LogStream {
  write: (line: string) => void
}

export interface GatewayParts extends Shared {
  /** True once the process is to end: model requests are refused, those that run go on. */
  readonly draining: () => boolean
  /** Where log lines go; default stdout. */
  readonly logStream?: LogStream
}

/** Resolves when every plugin is up; throws what a plugin threw, such as `LLM_GATEWAY_OPTION`. */
export async function createGateway (config: GatewayConfig, parts: GatewayParts): Promise<Gateway> {
  const app = Fastify(serverOptions(config, parts))
  const live = new LiveRequests()
  watchLife(app, live, parts.draining)
  app.register(llmGateway, bundleOptions(config, parts))
  app.get('/', async () => ({ name: 'llm-gateway' }))
  app.get('/health', async (_, reply) => parts.draining() ? reply.code(503).send({ status: 'draining' }) : { status: 'ok' })
  await up(app)
  // Last, so that the line has what the other plugins settled.
  app.llm.settlers.push((llm, request) => {
    logRequest(llm, request)
    live.delete(llm)
  })
  return { app, live }
}

/** An app that does not come up leaves nothing behind. */
async function up (app: FastifyInstance): Promise<void> {
  try {
    await app.ready()
  } catch (error) {
    await app.close()
    throw error
  }
}

function serverOptions (config: GatewayConfig, { logStream }: GatewayParts): FastifyServerOptions {
  return {
    // Takes the caller's key out of the URL before anything can log it (facts/telemetry.md 6).
    rewriteUrl: createRewriteUrl(),
    genReqId: () => randomUUID(),
    // Instead of Fastify's two lines, which tell a URL, one that tells the model request.
    logController: new LogController({ disableRequestLogging: true }),
    logger: {
      level: config.log?.level ?? 'info',
      serializers: { req: ({ method, url }) => ({ method, url: url.replace(/\?.*/s, '') }) },
      ...logStream && { stream: logStream },
    },
  }
}

/** Registered before every other hook: it knows each request that runs, and refuses new ones while the process ends. */
function watchLife (app: FastifyInstance, live: LiveRequests, draining: () => boolean): void {
  const gateway = joinGateway(app)
  app.addHook('onRequest', (request, reply, done) => {
    const llm = identify(gateway, request, reply)
    if (!(llm instanceof LlmRequest)) {
      done()
      return
    }
    live.add(llm)
    if (draining()) refuse(request, reply, llm.endpoint.family, gatewayError('shutting_down', {}, { headers: { connection: 'close' } }))
    else done()
  })
}
