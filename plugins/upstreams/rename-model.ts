import { textAt, textsAt, type Span } from '../core/body/json-text.js'

/**
 * Puts the upstream's name for the model in place of the caller's in the raw bytes of a JSON body, wherever a path leads to it
 * (`model`, `requests.*.model`); each other byte stays, and so does `prefix` where it stands before the name. Null where there is nothing
 * to replace.
 */
export function renameModel (body: Buffer, path: string, names: ReadonlyMap<string, string>, prefix = ''): Buffer | null {
  const pieces: Buffer[] = []
  let from = 0
  for (const span of textsAt(body, path.split('.'))) {
    const text = textAt(body, span) ?? ''
    const before = text.startsWith(prefix) ? prefix : ''
    const name = names.get(text.slice(before.length))
    if (name === undefined) continue
    pieces.push(body.subarray(from, span[0]), Buffer.from(JSON.stringify(before + name)))
    from = span[1]
  }
  return from === 0 ? null : Buffer.concat([...pieces, body.subarray(from)])
}

/** The same in a form, where the one value stands as it is. */
export function renameAt (body: Buffer, [start, end]: Span, name: string | undefined): Buffer {
  return name === undefined ? body : Buffer.concat([body.subarray(0, start), Buffer.from(name), body.subarray(end)])
}
