import { EventEmitter } from 'node:events'
import type { FastifyInstance } from 'fastify'

/**
 * If `localhost` has two addresses, Fastify listens at the second one with a server of its own, which is not exposed. Complete once `app`
 * listens.
 */
export function furtherServers (app: object): EventEmitter[] {
  for (let at: object | null = app; at !== null; at = Reflect.getPrototypeOf(at)) {
    const place = Object.getOwnPropertySymbols(at).find(({ description }) => description === 'fastify.serverBindings')
    const servers: unknown = place === undefined ? undefined : Reflect.get(at, place)
    if (Array.isArray(servers)) return servers.filter((server) => server instanceof EventEmitter)
  }
  return []
}

/** Calls `act` for each of them once `app` listens. */
export function onFurtherServers (app: FastifyInstance, act: (server: EventEmitter) => void): void {
  app.addHook('onListen', async () => furtherServers(app).forEach(act))
}
