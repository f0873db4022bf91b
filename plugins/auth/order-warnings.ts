import type { FastifyInstance } from 'fastify'
import type { AuthOptions } from './options.js'

/**
 * Plugins of the host that never see a request with a wrong key: it is refused in a hook of the app, before those of routes
 * and those that are registered later. To be called once all plugins are there.
 */
export function orderWarnings (app: FastifyInstance, { failures }: AuthOptions): () => string[] {
  const hadHelmet = app.hasPlugin('@fastify/helmet')
  return () => [
    ...!hadHelmet && app.hasPlugin('@fastify/helmet')
      ? ['@fastify/helmet is registered after the gateway, whose refusals of wrong keys do not have its headers: register it before']
      : [],
    ...failures === undefined && app.hasPlugin('@fastify/rate-limit')
      ? ['@fastify/rate-limit does not count requests with a wrong key, as its hooks stand on routes: set auth.failures, which does']
      : [],
  ]
}
