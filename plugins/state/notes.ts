/** Small texts that are remembered for a while, such as which upstream made a response, in each engine. */
import { LRUCache } from 'lru-cache'
import type { Notes } from '../core/upstream.js'
import type { Entry } from './lmdb-durable.js'
import type { LmdbFiles } from './lmdb-open.js'
import type { RedisLink } from './redis-link.js'

const maxNotes = 100_000

/** Of this process alone. */
export function memoryNotes (): Notes {
  const notes = new LRUCache<string, string>({ max: maxNotes })
  return {
    read: (name) => notes.get(name) ?? null,
    write: (name, text, ttlMs) => { notes.set(name, text, { ttl: ttlMs }) },
  }
}

/** Between two looks for notes whose time is over. */
const sweepEvery = 1_000

/** Of one host. */
export function lmdbNotes ({ notes, thread }: LmdbFiles, now: () => number = Date.now): Notes {
  let written = 0
  return {
    read: (name) => {
      const note = notes.get(name)
      return note === undefined || note.until <= now() ? null : note.text
    },
    write: async (name, text, ttlMs) => {
      written += 1
      const over = written % sweepEvery === 0 ? [...notes.getRange()].filter(({ value }) => value.until <= now()) : []
      const gone = over.map(({ key }): Entry => ['notes', key, null])
      if (!await thread.save([...gone, ['notes', name, { text, until: now() + ttlMs }]])) throw new Error('a note could not be written')
    },
  }
}

/** Of all that share the Redis. */
export function redisNotes (link: RedisLink, prefix: string): Notes {
  return {
    read: async (name) => await link.ask(async (client) => await client.get(`${prefix}:note:${name}`)),
    write: async (name, text, ttlMs) => { await link.ask(async (client) => await client.set(`${prefix}:note:${name}`, text, 'PX', ttlMs)) },
  }
}
