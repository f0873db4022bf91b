/** The bytes that frame JSON and event streams. */
export const lineFeed = 0x0a
export const carriageReturn = 0x0d
export const space = 0x20
export const quote = 0x22
export const comma = 0x2c
export const colon = 0x3a
export const openArray = 0x5b
export const backslash = 0x5c
export const closeArray = 0x5d
export const openObject = 0x7b
export const closeObject = 0x7d

/** White space of JSON. */
export function isSpace (byte: number | undefined): boolean {
  return byte === space || byte === lineFeed || byte === carriageReturn || byte === 0x09
}

/** True if the ASCII text is in `chunk` at `from`. */
export function standsAt (name: string, chunk: Buffer, from: number): boolean {
  for (let at = 0; at < name.length; at++) {
    if (chunk[from + at] !== name.charCodeAt(at)) return false
  }
  return true
}

/** One buffer of several; a single one as it is. */
export function joined (pieces: readonly Buffer[]): Buffer {
  const [first] = pieces
  return first !== undefined && pieces.length === 1 ? first : Buffer.concat(pieces)
}
