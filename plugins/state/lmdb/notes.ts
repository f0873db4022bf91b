import type { Notes } from '../../core/upstream/upstream.js'
import type { Entry } from './durable.js'
import type { LmdbFiles } from './open.js'

/**
 * Number of other notes checked for expiry at each write: with only one, their number could grow. Checking all at once held up the event
 * loop.
 */
const looks = 4

/** Notes of one host. */
export function lmdbNotes ({ notes, thread }: LmdbFiles, now: () => number = Date.now): Notes {
  /** Where the next check begins. */
  let next = ''
  const over = (): Entry[] => {
    const found = [...notes.getRange({ start: next, limit: looks + 1 })]
    next = found[looks]?.key ?? ''
    return found.slice(0, looks).filter(({ value }) => value.until <= now()).map(({ key }) => ['notes', key, null])
  }
  const read = (name: string): string | null => {
    // Otherwise it reads as of the last read within a millisecond: a note that the thread has written since would not be there.
    notes.resetReadTxn()
    const note = notes.get(name)
    return note === undefined || note.until <= now() ? null : note.text
  }
  return {
    read,
    write: async (name, text, ttlMs) => {
      if (!await thread.save([...over(), ['notes', name, { text, until: now() + ttlMs }]])) throw new Error('a note could not be written')
    },
    take: async (name) => {
      const text = read(name)
      return text !== null && await thread.save([['notes', name, null]]) ? text : null
    },
  }
}
