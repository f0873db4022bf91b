/** The share of one turn of the event loop that large bodies may take. */
import type { Readable } from 'node:stream'

/** About a millisecond of reading. Without this, a turn reads up to 2 MB of each socket before others get their turn. */
const turnBytes = 1024 * 1024

// Per process, like the event loop.
let takenBytes = 0
let resting: Readable[] = []

/** Counts bytes that this turn read of `stream`; beyond the share, pauses it until the next turn. Not for streams that others pause. */
export function restWhenShareIsTaken (stream: Readable, bytes: number): void {
  if (takenBytes === 0) setImmediate(beginTurn)
  takenBytes += bytes
  if (takenBytes <= turnBytes) return
  stream.pause()
  resting.push(stream)
}

function beginTurn (): void {
  takenBytes = 0
  const streams = resting
  resting = []
  for (const stream of streams) stream.resume()
}
