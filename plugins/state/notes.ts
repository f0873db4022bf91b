/** Small texts that are remembered for a while, such as which upstream made a response, in each engine. */
import { LRUCache } from 'lru-cache'
import type { Database } from 'lmdb'
import type { Notes } from '../core/upstream.js'
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

/** As it lies in the file. */
export interface StoredNote {
  readonly text: string
  /** Milliseconds since the epoch. */
  readonly until: number
}

/** Between two looks for notes whose time is over. */
const sweepEvery = 1_000

/** Of one host. */
export function lmdbNotes (notes: Database<StoredNote, string>, now: () => number = Date.now): Notes {
  let written = 0
  return {
    read: (name) => {
      const note = notes.get(name)
      return note === undefined || note.until <= now() ? null : note.text
    },
    write: async (name, text, ttlMs) => {
      written += 1
      if (written % sweepEvery === 0) {
        for (const { key, value } of notes.getRange()) if (value.until <= now()) notes.remove(key)
      }
      await notes.put(name, { text, until: now() + ttlMs })
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
