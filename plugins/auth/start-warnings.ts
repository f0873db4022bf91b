import type { FastifyInstance } from 'fastify'
import type { AuthOptions } from './options.js'

/** Plugins that add headers to every reply, but to refusals only if they are registered before the plugin that refuses. */
const writers = ['@fastify/helmet', '@fastify/cors'] as const

const nobody = 'nobody has a key here, so that each model request is answered 401: give the gateway keys, a store or a lookup'

/**
 * Warnings that nobody has a key, and that some plugins of the host never see a request with a wrong key: it is refused in a hook of the
 * app, before the hooks of routes and those that are registered later. Call it before anything else is registered, and what it returns once
 * all plugins are there.
 */
export function startWarnings (app: FastifyInstance, { keys = [], store, lookup, failures }: AuthOptions): () => string[] {
  const later = writers.filter((name) => !app.hasPlugin(name))
  return () => [
    ...keys.length === 0 && store === undefined && lookup === undefined ? [nobody] : [],
    ...later.filter((name) => app.hasPlugin(name)).map((name) => {
      return `${name} is registered after the gateway, whose refusals of wrong keys do not have its headers: register it before`
    }),
    ...failures === undefined && app.hasPlugin('@fastify/rate-limit')
      ? ['@fastify/rate-limit does not count requests with a wrong key, as its hooks stand on routes: set auth.failures, which does, or ' +
        'to false where you have app.addHook(\'onRequest\', app.rateLimit()) before the gateway, and rewriteUrl: createRewriteUrl() in ' +
        'the app\'s options, without which a path that is repaired counts twice']
      : [],
  ]
}
