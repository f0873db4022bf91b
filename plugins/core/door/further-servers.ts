import { EventEmitter } from 'node:events'

/**
 * Where `localhost` has two addresses, Fastify listens at the second by a server of its own, which it tells nobody of. There once `app`
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
