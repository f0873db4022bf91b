import { constants, gunzipSync } from 'node:zlib'

const nothing: Buffer = Buffer.alloc(0)

/**
 * What can be read of packed bytes before those that are none: gunzip ignores what follows the members (RFC 1952 2.2), where Node fails and
 * keeps back all that it has read of the same piece. The longest part that can be read is looked for by halves.
 */
export function readablePart (bytes: Buffer, maxOutputLength: number): Buffer {
  let good = 0
  let bad = bytes.length
  let read = nothing
  while (bad - good > 1) {
    const middle = good + (bad - good >> 1)
    const part = readOrNull(bytes.subarray(0, middle), maxOutputLength)
    if (part === null) bad = middle
    else {
      good = middle
      read = part
    }
  }
  return read
}

function readOrNull (bytes: Buffer, maxOutputLength: number): Buffer | null {
  try {
    return gunzipSync(bytes, { maxOutputLength, finishFlush: constants.Z_SYNC_FLUSH })
  } catch {
    return null
  }
}
