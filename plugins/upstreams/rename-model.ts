import { textAt, type Span } from '../core/body/json-text.js'

/**
 * Replaces the caller's name of the model by the upstream's in the raw bytes of a JSON body, at `places`, which are in the order of the
 * text. Every other byte stays, and so does a `prefix` before the name. The same buffer if there is nothing to replace.
 */
export function renameModel (body: Buffer, places: readonly Span[], names: ReadonlyMap<string, string>, prefix = ''): Buffer {
  const pieces: Buffer[] = []
  let from = 0
  for (const place of places) {
    const text = textAt(body, place) ?? ''
    const before = text.startsWith(prefix) ? prefix : ''
    const name = names.get(text.slice(before.length))
    if (name === undefined) continue
    pieces.push(body.subarray(from, place[0]), Buffer.from(JSON.stringify(before + name)))
    from = place[1]
  }
  return from === 0 ? body : Buffer.concat([...pieces, body.subarray(from)])
}

/** The length that a line of a part's head tells. */
const ownLength = /^(content-length:[ \t]*)\d+/gim

/**
 * The same in a form, where the value is not quoted. A part may tell its length, and some servers read no more of it. Its head begins at
 * the last delimiter before its value: no header begins with a dash.
 */
export function renameAt (body: Buffer, [start, end]: Span, name: string | undefined): Buffer {
  if (name === undefined) return body
  const value = Buffer.from(name)
  const headStart = Math.max(0, body.lastIndexOf('\r\n--', start - 3))
  const head = body.toString('latin1', headStart, start).replace(ownLength, (_, field: string) => `${field}${value.length}`)
  return Buffer.concat([body.subarray(0, headStart), Buffer.from(head, 'latin1'), value, body.subarray(end)])
}
