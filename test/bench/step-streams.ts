/**
 * Streams whose next event leaves the upstream only when every caller has the one before: an event that a gateway holds
 * back never comes, and one that it splits takes two reads. No clock and no load can blur that.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Lane } from './rounds.js'
import type { Session } from './session.js'

const streams = 8
const maxWaitMs = 5_000

async function until (ready: () => boolean, failed: () => Error | null, what: string): Promise<void> {
  for (const startedAt = performance.now(); !ready();) {
    const error = failed()
    if (error !== null) throw error
    if (performance.now() - startedAt > maxWaitMs) throw new Error(what)
    await sleep(0)
  }
}

/** Share of the streams that came in exactly as many reads as there were writes. */
export async function stepStreams (session: Session, lane: Lane, events: number): Promise<number> {
  const { pieces } = session.work('bench-stepped')
  let failure: Error | null = null
  const connections = await lane.target.callers.take(streams, error => { failure ??= error })
  const reads: number[] = []
  for (const connection of connections) connection.send(lane.exchange, timing => reads.push(timing.bodyReads))
  let sent = 0
  for (const [at, piece] of pieces.entries()) {
    sent += piece.length
    const arrived = at === events - 1 ? () => reads.length === streams : () => connections.every(({ bodyBytes }) => bodyBytes >= sent)
    await until(arrived, () => failure, `${lane.name}: event ${at} was held back`)
    await session.upstream.tell('tick')
  }
  lane.answered += streams
  return reads.filter(count => count === events).length / streams
}
