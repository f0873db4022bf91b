import { util } from './undici.js'

/** By lower-case name; a header that comes more than once is a list. */
export type Headers = Record<string, string | string[] | undefined>

/** A header as it was at one place of the previous reply. */
interface Seen {
  /** As it was written, and in lower case. */
  readonly written: string
  readonly name: string
  /** Its value, if that was short and no cookie. */
  value: string
}

const maxPlaces = 64
const maxShortBytes = 64

/**
 * Reads the headers of replies from their bytes. An upstream sends much the same headers in the same order each time: one that is the same
 * as in the previous reply is recognised by its bytes, in half of the time that making strings takes.
 */
export class HeaderReader {
  readonly #seen: Seen[] = []

  /** `raw`: names and values by turns. */
  read (raw: readonly Buffer[]): Headers {
    const headers: Headers = {}
    let place = 0
    let seen: Seen | null = null
    for (const bytes of raw) {
      if (seen === null) seen = this.#named(place++, bytes)
      else {
        add(headers, seen.name, valueOf(seen, bytes))
        seen = null
      }
    }
    return headers
  }

  #named (place: number, name: Buffer): Seen {
    const known = this.#seen[place]
    if (known !== undefined && isWritten(known.written, name)) return known
    const seen = { written: name.toString('latin1'), name: util.headerNameToString(name), value: '' }
    if (place < maxPlaces) this.#seen[place] = seen
    return seen
  }
}

/** The headers of one reply, without remembering any. */
export function readHeaders (raw: readonly Buffer[]): Headers {
  return new HeaderReader().read(raw)
}

function valueOf (seen: Seen, bytes: Buffer): string {
  if (isWritten(seen.value, bytes)) return seen.value
  const value = bytes.toString('latin1')
  if (value.length <= maxShortBytes && seen.name !== 'set-cookie') seen.value = value
  return value
}

/** True if the bytes are those of the text. For short ones this is faster than a native comparison. */
function isWritten (text: string, bytes: Buffer): boolean {
  const { length } = text
  if (length !== bytes.length) return false
  for (let at = 0; at < length; at++) if (bytes[at] !== text.charCodeAt(at)) return false
  return true
}

/** Of two content types the first counts. A list that is split over two headers is one list (RFC 9110 5.3). */
function add (headers: Headers, name: string, value: string): void {
  const before = headers[name]
  // A name may also be one that every object inherits.
  if (before === undefined || !Object.hasOwn(headers, name)) headers[name] = value
  else if (name === 'content-encoding') headers[name] = `${String(before)}, ${value}`
  else if (typeof before !== 'string') before.push(value)
  else if (name !== 'content-type') headers[name] = [before, value]
}
