interface RepeatedName {
  readonly path: ReadonlyArray<string | number>
  /** Where it stands again, counted from 1. */
  readonly line: number
}

interface Open {
  readonly names: Set<string>
  /** The name or the index that is read now. */
  at: string | number
}

/** A string, with its colon where it is a name; or a sign that begins, parts or ends values. */
const tokens = /"(?:[^"\\]|\\.)*"(\s*:)?|[{}[\],]/g

/** The first name that an object of a well-formed JSON text holds twice, however it is spelled: parsers take the last one in silence. */
export function repeatedName (text: string): RepeatedName | null {
  const open: Open[] = []
  for (const { 0: token, 1: colon, index } of text.matchAll(tokens)) {
    const inner = open.at(-1)
    if (token === '{' || token === '[') open.push({ names: new Set(), at: token === '[' ? 0 : '' })
    else if (token === '}' || token === ']') open.pop()
    else if (inner === undefined) return null
    else if (token === ',' && typeof inner.at === 'number') inner.at++
    else if (colon !== undefined) {
      inner.at = String(JSON.parse(token.slice(0, -colon.length)))
      if (inner.names.has(inner.at)) return { path: open.map(({ at }) => at), line: text.slice(0, index).split('\n').length }
      inner.names.add(inner.at)
    }
  }
  return null
}
