import type { FastifyRequest } from 'fastify'
import type { ModelCall } from './model-call.js'

/** What serves a request: a route of this package, a mount that spreads `proxyOptions()`, or any other route of the host. */
export type RouteKind = 'own' | 'proxy' | 'host'

/** Asked of Fastify once for each pass through the router, and only where the scope does not tell: it makes a new object of twelve fields each time. */
export function routeOf (llm: ModelCall, request: FastifyRequest): RouteKind {
  const { server } = request
  llm.route ??= server === server.llm.ownScope ? 'own' : request.routeOptions.config.llm ?? 'host'
  return llm.route
}
