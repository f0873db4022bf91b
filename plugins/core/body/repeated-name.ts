interface RepeatedName {
  readonly path: ReadonlyArray<string | number>
  /** Line of the second occurrence, counted from 1. */
  readonly line: number
}

interface Open {
  readonly names: Set<string>
  /** The name or the index that is being read. */
  at: string | number
}

/** A string, with its colon if it is a name; or a character that opens, separates or closes values. */
const tokens = /"(?:[^"\\]|\\.)*"(\s*:)?|[{}[\],]/g

/** The first name that an object of a well-formed JSON text has twice, in whatever spelling: parsers silently use the last one. */
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
