/** Small texts that are remembered for a while, such as which upstream made a response, in each engine. */
import { LRUCache } from 'lru-cache'
import type { Notes } from '../core/upstream/upstream.js'
import type { Entry } from './lmdb/durable.js'
import type { LmdbFiles } from './lmdb/open.js'
import type { RedisLink } from './redis/link.js'

const maxNotes = 100_000

/** Of this process alone. */
export function memoryNotes (): Notes {
  const notes = new LRUCache<string, string>({ max: maxNotes })
  return {
    read: (name) => notes.get(name) ?? null,
    write: (name, text, ttlMs) => { notes.set(name, text, { ttl: ttlMs }) },
  }
}

/** Others that are looked at when one is written: more than one, or there would be more and more of them. All at once held up the loop. */
const looks = 4

/** Of one host. */
export function lmdbNotes ({ notes, thread }: LmdbFiles, now: () => number = Date.now): Notes {
  /** Where the next look begins. */
  let next = ''
  const over = (): Entry[] => {
    const found = [...notes.getRange({ start: next, limit: looks + 1 })]
    next = found[looks]?.key ?? ''
    return found.slice(0, looks).filter(({ value }) => value.until <= now()).map(({ key }) => ['notes', key, null])
  }
  return {
    read: (name) => {
      const note = notes.get(name)
      return note === undefined || note.until <= now() ? null : note.text
    },
    write: async (name, text, ttlMs) => {
      if (!await thread.save([...over(), ['notes', name, { text, until: now() + ttlMs }]])) throw new Error('a note could not be written')
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
