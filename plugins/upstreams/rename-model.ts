import { textAt, textsOf, type Span } from '../core/json-text.js'

/**
 * Puts the upstream's name for the model in place of the caller's in the raw bytes of a JSON body, wherever it stands at the
 * top; each other byte stays. Null where there is nothing to replace.
 */
export function renameModel (body: Buffer, field: string, names: ReadonlyMap<string, string>): Buffer | null {
  const pieces: Buffer[] = []
  let from = 0
  for (const span of textsOf(body, field)) {
    const text = textAt(body, span)
    const name = text === null ? undefined : names.get(text)
    if (name === undefined) continue
    pieces.push(body.subarray(from, span[0]), Buffer.from(JSON.stringify(name)))
    from = span[1]
  }
  return from === 0 ? null : Buffer.concat([...pieces, body.subarray(from)])
}

/** The same in a form, where the one value stands as it is. */
export function renameAt (body: Buffer, [start, end]: Span, name: string | undefined): Buffer {
  return name === undefined ? body : Buffer.concat([body.subarray(0, start), Buffer.from(name), body.subarray(end)])
}
