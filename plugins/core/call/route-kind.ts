import type { FastifyContextConfig, FastifyRequest } from 'fastify'
import { gatewayOf } from '../gateway.js'
import type { ModelCall } from './model-call.js'
import type { RouteKind } from '../types.js'

/**
 * What serves the request. `routeOptions` is read once for each pass through the router, and only if the scope does not decide: Fastify
 * makes a new object of twelve fields each time.
 */
export function routeOf (llm: ModelCall, request: FastifyRequest): RouteKind {
  const { server } = request
  llm.route ??= server === gatewayOf(server).ownScope ? 'own' : kindOf(request.routeOptions.config)
  return llm.route
}

/** Adapted mounts have the configuration of `proxyOptions()`. A host may use the same name for a matter of its own: that tells nothing. */
export function kindOf ({ llm }: FastifyContextConfig): RouteKind {
  if (llm === 'proxy') return 'adapted'
  return llm === 'own' ? 'own' : 'host'
}
