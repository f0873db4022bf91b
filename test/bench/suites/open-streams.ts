/** Ten thousand streams open at once: what each holds, and whether each gets to its end. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Exchange } from '../load/connection.js'
import { maxOpenFiles } from '../machine.js'
import type { Findings } from '../report.js'
import type { Session } from '../session.js'
import { spread } from '../stats.js'
import { requestBytes } from '../work.js'

const model = 'bench-held'

const maxWaitMs = 60_000

export interface Held {
  readonly streams: number
  /** Memory of one open stream after a collection, KB. */
  readonly kilobytes: number
}

/** A gateway holds two sockets for each stream, and some files of its own. */
export function mostStreams (wanted: number): number {
  return Math.min(wanted, Math.floor((maxOpenFiles() - 200) / 2))
}

export async function holdStreams (session: Session, server: string, streams: number): Promise<Held> {
  const work = session.work(model)
  const target = await session.start(server, server, {
    nodeOptions: ['--expose-gc'],
    env: { BENCH_CONNECTIONS: String(streams + 100) },
  })
  const before = await target.collected()
  let failure: Error | null = null
  const connections = await target.callers.take(streams, error => { failure ??= error })
  const exchange: Exchange = { bytes: requestBytes(work), status: 200, reply: work.reply }
  let done = 0
  for (const [at, connection] of connections.entries()) {
    connection.send(exchange, () => { done += 1 })
    if (at % 50 === 49) await sleep(5)
  }
  const until = async (ready: () => boolean): Promise<void> => {
    for (const startedAt = performance.now(); !ready();) {
      if (failure !== null) throw failure
      if (performance.now() - startedAt > maxWaitMs) {
        throw new Error(`${server}: of ${streams} streams only ${done} came to their end within a minute`)
      }
      await sleep(50)
    }
  }
  const [first = Buffer.alloc(0), second = Buffer.alloc(0)] = work.pieces
  await until(() => connections.every(connection => connection.bodyBytes >= first.length))
  await session.upstream.tell('tick')
  await until(() => connections.every(connection => connection.bodyBytes >= first.length + second.length))
  const during = await target.collected()
  await session.upstream.tell('release')
  await until(() => done === streams)
  await session.stop()
  return { streams, kilobytes: (during.rssBytes - before.rssBytes) / 1024 / streams }
}

export async function openStreams (session: Session): Promise<Findings> {
  const streams = mostStreams(session.pick({ quick: 1_000, full: 10_000 }))
  const e = await holdStreams(session, 'e', streams)
  const chain = await holdStreams(session, 'chain', streams)
  const again = await holdStreams(session, 'e', streams)
  const value = chain.kilobytes - (e.kilobytes + again.kilobytes) / 2
  return {
    rows: [{
      name: 'open_stream_kb',
      measure: 'memory of an open stream beyond e, KB',
      value,
      reach: { atMost: 40 },
      aaSpread: spread(e.kilobytes, again.kilobytes),
      note: `${streams} open, none lost`,
    }],
    details: [
      { suite: 'open', target: 'e', streams, 'KB each': e.kilobytes },
      { suite: 'open', target: 'chain', streams, 'KB each': chain.kilobytes },
      { suite: 'open', target: 'e2', streams, 'KB each': again.kilobytes },
    ],
  }
}
