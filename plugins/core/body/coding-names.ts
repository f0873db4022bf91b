/** No server compresses a body more than twice. Each layer takes time, and a header has room for thousands. */
const maxLayers = 2

/** The names in a `content-encoding` header, in the order in which the codings were applied; null if there are too many. */
export function codingNames (header: string): readonly string[] | null {
  const names = header.toLowerCase().split(',').map((name) => name.trim()).filter((name) => name !== '' && name !== 'identity')
  return names.length > maxLayers ? null : names
}

/** `deflate` is zlib by RFC 9110 8.4.1.2, but raw from some servers: the first byte shows which. */
export function isZlib (firstByte: number): boolean {
  return (firstByte & 0x0f) === 8
}
