import { constants, gunzipSync } from 'node:zlib'

const nothing: Buffer = Buffer.alloc(0)

/**
 * What can be read of compressed bytes that are followed by junk. gunzip ignores what follows the members (RFC 1952 2.2); Node fails and
 * emits nothing of the same piece. The longest readable part is found by bisection.
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
