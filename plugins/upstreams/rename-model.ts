import { textAt, textsAt, type Span } from '../core/body/json-text.js'

/**
 * Replaces the caller's name of the model by the upstream's in the raw bytes of a JSON body, at every place that `path` leads to
 * (`model`, `requests.*.model`). Every other byte stays, and so does a `prefix` before the name. Null if there is nothing to replace.
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

/** The same in a form, where the value is not quoted. */
export function renameAt (body: Buffer, [start, end]: Span, name: string | undefined): Buffer {
  return name === undefined ? body : Buffer.concat([body.subarray(0, start), Buffer.from(name), body.subarray(end)])
}
