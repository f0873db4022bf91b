import type { Notes } from '../../core/upstream/upstream.js'
import type { RedisLink } from './link.js'

/** Notes of all gateways that share the Redis. */
export function redisNotes (link: RedisLink, prefix: string): Notes {
  return {
    read: async (name) => await link.ask(async (client) => await client.get(`${prefix}:note:${name}`)),
    write: async (name, text, ttlMs) => { await link.ask(async (client) => await client.set(`${prefix}:note:${name}`, text, 'PX', ttlMs)) },
    take: async (name) => await link.ask(async (client) => await client.getdel(`${prefix}:note:${name}`)),
  }
}
