import { LRUCache } from 'lru-cache'
import type { Notes } from './upstream.js'

const maxNotes = 100_000

/** Notes of this process. */
export function memoryNotes (): Notes {
  const notes = new LRUCache<string, string>({ max: maxNotes })
  const read = (name: string): string | null => notes.get(name) ?? null
  return {
    read,
    write: (name, text, ttlMs) => { notes.set(name, text, { ttl: ttlMs }) },
    take: (name) => {
      const text = read(name)
      notes.delete(name)
      return text
    },
  }
}
