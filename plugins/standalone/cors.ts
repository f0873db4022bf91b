import type { FastifyInstance, FastifyRequest } from 'fastify'
import { gatewayOf } from '../core/gateway.js'

export interface CorsEntry {
  /** Origins as browsers send them, such as `https://app.example`; `*` for any. */
  readonly origins: readonly string[]
}

/**
 * Lets pages of these origins call the model endpoints, and nothing else of the app. Registered before everything that answers requests, so
 * that a page can read refusals, too. Keys are sent in headers and never in cookies: they are no credentials in the sense of CORS.
 */
export async function allowOrigins (app: FastifyInstance, { origins }: CorsEntry): Promise<void> {
  // Loaded only if a page may call.
  const { default: cors } = await import('@fastify/cors')
  const allowed = {
    origin: [...origins], methods: ['GET', 'HEAD', 'POST', 'DELETE'], exposedHeaders: '*', maxAge: 600, strictPreflight: false,
  }
  await app.register(cors, {
    delegator: (request: FastifyRequest, done) => done(null, isModelPath(request) ? allowed : { origin: false }),
  })
}

/** By any method: a page can read the refusal of a wrong one, too. */
function isModelPath ({ server, method, raw }: FastifyRequest): boolean {
  return gatewayOf(server).resolve(method, String(raw.url), {}) !== null
}
