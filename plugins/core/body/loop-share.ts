/** The share of one turn of the event loop that large bodies may take. */
import type { Readable } from 'node:stream'

/** About a millisecond of reading. Left alone, a turn reads 2 MB of each socket that has them before anybody else is looked at. */
const turnBytes = 1024 * 1024

// Of the process, as the loop is.
let takenBytes = 0
let resting: Readable[] = []

/** Counts what a turn has read of `stream`: beyond the share it rests until the next turn. Not for streams that others pause as well. */
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
