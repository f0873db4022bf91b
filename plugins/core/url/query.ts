/** A query with the `key` parameter taken out of it. */
export interface SplitQuery {
  /** With its `?`, or empty; every other parameter byte for byte. */
  readonly query: string
  /** The values of `key`, each decoded once; null where there was none. */
  readonly keys: string[] | null
}

function decodeOnce (text: string): string {
  try {
    return decodeURIComponent(text.replace(/\+/g, ' '))
  } catch {
    return text
  }
}

/** Separates the credential from the rest of a query (`?...` or empty), whatever spelling its name has. */
export function splitKeys (query: string): SplitQuery {
  if (!/k|%/i.test(query)) return { query, keys: null }
  const keys: string[] = []
  const kept: string[] = []
  for (const pair of query.slice(1).split('&')) {
    const [name = '', ...value] = pair.split('=')
    if (decodeOnce(name) === 'key') keys.push(decodeOnce(value.join('=')))
    else kept.push(pair)
  }
  if (keys.length === 0) return { query, keys: null }
  return { query: kept.length === 0 ? '' : `?${kept.join('&')}`, keys }
}
