/** `; name=value` pairs after a media type or a disposition. Empty ones are matched together: thousands of them fit into a header. */
const pair = /(?:[ \t]*;)+[ \t]*(?:([!#$%&'*+\-.^_`|~\w]+)=(?:([!#$%&'*+\-.^_`|~\w]+)|"((?:[^"\\\r\n]|\\[^\r\n])*)"))?[ \t]*/y

/**
 * Parameters in the form of RFC 9110 5.6.6 (empty ones allowed), names in lower case, values without their quotes but with their escapes.
 * Some servers know no `Boundary=` or `NAME=`: these keep their case. Null if the text is anything else or has a name twice: what two
 * readers could read in two ways is not read at all.
 */
export function readParameters (text: string): ReadonlyMap<string, string> | null {
  const found = new Map<string, string>()
  let at = 0
  while (at < text.length) {
    pair.lastIndex = at
    const match = pair.exec(text)
    if (match === null) return null
    at = pair.lastIndex
    const [, given, token, quoted] = match
    if (given === undefined) continue
    const name = /^(?:boundary|name)$/i.test(given) ? given : given.toLowerCase()
    if (found.has(name)) return null
    found.set(name, String(token ?? quoted))
  }
  return found
}

/** True for a charset in which plain letters and digits are the bytes that they are in ASCII. */
export function isLikeAscii (charset: string): boolean {
  return /^(?:utf-?8|(?:us-)?ascii|iso-8859-\d+|windows-125\d)$/i.test(charset)
}
