/**
 * A gateway in a process of its own, so that its memory can be told from that of its callers and its upstream. Forked with
 * `--expose-gc`: argv[2] is the upstream's address, argv[3] the number of the mount in `hosts`. Sends its address when it
 * listens, and answers every message with a reading.
 */
import process from 'node:process'
import { listen } from '../helpers/gateway.js'
import { hosts } from './hosts.js'

export interface Reading {
  readonly rss: number
  readonly heapUsed: number
  readonly arrayBuffers: number
  /** Sockets and timers that are open now. */
  readonly resources: string[]
  readonly settled: number
  /** Tokens of all settled requests. */
  readonly tokens: number
  /** Requests that were settled without usage, by reason. */
  readonly missing: Record<string, number>
}

const [, , upstreamUrl = '', host = '0'] = process.argv
const totals = { settled: 0, tokens: 0, missing: {} as Record<string, number> }

const { app } = await (hosts[Number(host)] ?? hosts[0]).start({ teardown: () => {} }, upstreamUrl)
// The tests' own watcher keeps every request that it has seen.
app.llm.settlers.pop()
app.llm.settlers.push((llm) => {
  totals.settled += 1
  totals.tokens += Object.values(llm.usage ?? {}).reduce((sum: number, tokens: number) => sum + tokens, 0)
  if (llm.usageMissing !== null) totals.missing[llm.usageMissing] = (totals.missing[llm.usageMissing] ?? 0) + 1
})
const address = await listen(app)

process.on('message', (collect) => {
  if (collect === true) globalThis.gc?.()
  const { rss, heapUsed, arrayBuffers } = process.memoryUsage()
  process.send?.({ rss, heapUsed, arrayBuffers, resources: process.getActiveResourcesInfo(), ...totals })
})
process.on('disconnect', () => process.exit())
process.send?.({ address })
