/**
 * Reads a raw request path as segments, without ever decoding it into something else: router, policy and upstream must see exactly the same
 * text.
 */

const versions = new Set(['v1', 'v1beta', 'v1alpha'])

/** How often a reader may decode what a caller encoded. */
export const maxDecodeRounds = 4

/** True for a path that another reader could take for a different one: encoded letters, dot segments, backslashes, controls. */
export function isSuspicious (path: string): boolean {
  return path[0] !== '/' || /[^\x21-\x7e]|[\\#%;]|\/\.{1,2}(?:\/|$)/.test(path)
}

/** False for a path that the router refuses, because its percent-encoding is broken. */
export function isDecodable (path: string): boolean {
  try {
    decodeURI(path)
    return true
  } catch {
    return false
  }
}

/** The segments of a path: runs of slashes count as one, a slash at the end as none. */
export function segmentsOf (path: string): string[] {
  return path.split('/').filter((segment) => segment !== '')
}

/** The version segments at the start. */
export function leadingVersions (segments: readonly string[]): readonly string[] {
  const end = segments.findIndex((segment) => !versions.has(segment))
  return end < 0 ? segments : segments.slice(0, end)
}

/** What precedes the version segments at the end of a path, without a slash at its end: the mount prefix, as path. */
export function beforeVersions (path: string): string {
  const segments = segmentsOf(path)
  const end = segments.findLastIndex((segment) => !versions.has(segment)) + 1
  return segments.slice(0, end).map((segment) => `/${segment}`).join('')
}

/** Length of the text before the version segments at its end; its other segments may be anything. */
export function lengthBeforeVersions (text: string): number {
  let end = text.length
  while (end > 0) {
    const slash = text.lastIndexOf('/', end - 1)
    if (slash < 0 || !versions.has(text.slice(slash + 1, end))) break
    end = slash
  }
  return end
}

/** A path from its first version segment on; `/` without one. */
export function fromVersions (path: string): string {
  const segments = segmentsOf(path)
  const at = segments.findIndex((segment) => versions.has(segment))
  return at < 0 ? '/' : `/${segments.slice(at).join('/')}`
}

/** True for a path that ends in a version segment. */
export function endsInVersion (path: string): boolean {
  return versions.has(segmentsOf(path).at(-1) ?? '')
}

/** The segments after a mount prefix; null if the path is not below it. */
export function belowPrefix (segments: readonly string[], prefix: readonly string[]): readonly string[] | null {
  return prefix.every((segment, i) => segments[i] === segment) ? segments.slice(prefix.length) : null
}

/**
 * Everything that a lenient reader might read a path as: decoded any number of times, backslashes as slashes, cut at `#` and `;` or without
 * `;parameters`, dot segments resolved or not, blanks and controls dropped as WHATWG URL parsing drops them. Used only to refuse, never to
 * serve.
 */
export function readings (path: string, caseSensitive: boolean): string[][] {
  const texts = new Set<string>()
  let text = path.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/]*/i, '')
  for (let round = 0; round <= maxDecodeRounds; round += 1) {
    if (!caseSensitive) text = text.toLowerCase()
    for (const cut of [text, text.replace(/[#?].*/s, '')]) {
      texts.add(cut.replace(/[#;?].*/s, '')).add(cut.replace(/;[^/\\]*/g, '').replace(/[#?].*/s, ''))
    }
    const decoded = decodeLeniently(text)
    if (decoded === text) break
    text = decoded
  }
  // On the whole path and once for each reading: a path has room for thousands of segments.
  const freed = new Set([...texts].map((reading) => reading.replace(/\\/g, '/').replace(/[^!-~\xa0-\uffff]/g, '')))
  return [...freed].flatMap((reading) => {
    const segments = segmentsOf(reading)
    return /\/\.{1,2}(?:\/|$)/.test(`/${reading}`) ? [segments, withoutDots(segments)] : [segments]
  })
}

function decodeLeniently (text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)))
  }
}

function withoutDots (segments: readonly string[]): string[] {
  const resolved: string[] = []
  for (const segment of segments) {
    if (segment === '..') resolved.pop()
    else if (segment !== '.') resolved.push(segment)
  }
  return resolved
}
