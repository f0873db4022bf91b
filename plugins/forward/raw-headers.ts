import { util } from './undici.js'

/** By lower-case name; what comes more than once is a list. */
export type Headers = Record<string, string | string[] | undefined>

/** The headers of an upstream's reply, from their bytes: names and values by turns. */
export function readHeaders (raw: readonly Buffer[]): Headers {
  const headers: Headers = {}
  let name: string | null = null
  for (const bytes of raw) {
    if (name === null) name = util.headerNameToString(bytes)
    else {
      add(headers, name, bytes.toString('latin1'))
      name = null
    }
  }
  return headers
}

/** A reply has one type: of two the first counts. A list that stands in two headers is one list (RFC 9110 5.3). */
function add (headers: Headers, name: string, value: string): void {
  const before = headers[name]
  // A name may also be that of something which every object has.
  if (before === undefined || !Object.hasOwn(headers, name)) headers[name] = value
  else if (name === 'content-encoding') headers[name] = `${String(before)}, ${value}`
  else if (typeof before !== 'string') before.push(value)
  else if (name !== 'content-type') headers[name] = [before, value]
}
