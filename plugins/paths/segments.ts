/**
 * Reading a raw request path as segments, without ever decoding it into something else: what the router, the policy and
 * the upstream see must be one and the same text (facts/reliability.md, P3-P8).
 */

const versions = new Set(['v1', 'v1beta', 'v1alpha'])

/** True for a path that another reader could take for a different one: encoded letters, dot segments, backslashes, controls. */
export function isSuspicious (path: string): boolean {
  return path[0] !== '/' || /[^\x21-\x7e]|[\\#%;]|\/\.{1,2}(?:\/|$)/.test(path)
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

/** The segments after a mount prefix, or null where the path is not below it. */
export function belowPrefix (segments: readonly string[], prefix: readonly string[]): readonly string[] | null {
  return prefix.every((segment, i) => segments[i] === segment) ? segments.slice(prefix.length) : null
}

/**
 * What a suspicious path might be read as by a lenient reader: decoded until it stays the same, backslashes as slashes,
 * cut at `#` and `;`, dot segments resolved, blanks and controls dropped as WHATWG URL parsing drops them. Only ever
 * used to refuse, never to serve.
 */
export function lenientSegments (path: string): string[] {
  const local = path.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/]*/i, '')
  const text = decodeFully(local).replace(/\\/g, '/').replace(/[#;?].*$/s, '')
  const segments: string[] = []
  for (const raw of text.split('/')) {
    const segment = Array.from(raw).filter((char) => char > ' ').join('')
    if (segment === '..') segments.pop()
    else if (segment !== '' && segment !== '.') segments.push(segment)
  }
  return segments
}

const maxDecodeRounds = 4

function decodeFully (text: string): string {
  let decoded = text
  for (let round = 0; round < maxDecodeRounds; round += 1) {
    decoded = decoded.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)))
  }
  return decoded
}
