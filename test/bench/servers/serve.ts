/** The end of a target that faces the driver: says where it listens, and answers questions about its own cost. */
import { Session } from 'node:inspector/promises'
import { constants, PerformanceObserver } from 'node:perf_hooks'

export interface Usage {
  /** User and system time of the whole process so far, microseconds. */
  readonly cpuUs: number
  readonly rssBytes: number
  readonly peakRssBytes: number
  /** Collections of the whole heap so far. */
  readonly markCompacts: number
}

export interface Question {
  readonly id: number
  readonly ask: 'usage' | 'metrics' | 'collect' | 'measure' | 'sample' | 'profile'
}

export interface Extras {
  /** Cost of a target that is more than this process. */
  readonly usage?: () => Promise<Usage>
  /** Exposition text of the target's own metrics. */
  readonly metrics?: () => Promise<string>
  /** Any other measurement that must be taken inside the process. */
  readonly measure?: () => Promise<unknown>
}

const inspector = new Session()

/** Starts sampling where the processor time goes: what came before, such as the start, is left out. */
async function sample (): Promise<void> {
  inspector.connect()
  await inspector.post('Profiler.enable')
  await inspector.post('Profiler.setSamplingInterval', { interval: 200 })
  await inspector.post('Profiler.start')
}

let markCompacts = 0

function isMarkCompact (entry: object): boolean {
  const detail = 'detail' in entry ? entry.detail : null
  return typeof detail === 'object' && detail !== null && 'kind' in detail && detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR
}

new PerformanceObserver(list => {
  markCompacts += list.getEntries().filter(isMarkCompact).length
}).observe({ entryTypes: ['gc'] })

export function usage (): Usage {
  const { user, system } = process.cpuUsage()
  return { cpuUs: user + system, rssBytes: process.memoryUsage.rss(), peakRssBytes: process.resourceUsage().maxRSS * 1024, markCompacts }
}

async function answer (ask: Question['ask'], extras: Extras): Promise<unknown> {
  if (ask === 'metrics') return await extras.metrics?.() ?? ''
  if (ask === 'measure') return await extras.measure?.() ?? null
  if (ask === 'sample') await sample()
  if (ask === 'profile') return (await inspector.post('Profiler.stop')).profile
  if (ask === 'collect') {
    for (let round = 0; round < 3; round++) {
      globalThis.gc?.()
      await new Promise(resolve => setTimeout(resolve, 20))
    }
  }
  return await (extras.usage?.() ?? usage())
}

function isQuestion (message: unknown): message is Question {
  return typeof message === 'object' && message !== null && 'ask' in message
}

/** Announces the port and serves the driver until it leaves. */
export function serve (port: number, extras: Extras = {}): void {
  process.on('message', message => {
    if (!isQuestion(message)) return
    answer(message.ask, extras).then(
      value => process.send?.({ id: message.id, value }),
      error => process.send?.({ id: message.id, error: String(error) })
    )
  })
  process.on('disconnect', () => process.exit(0))
  process.send?.({ port })
}

/** What the driver tells a target at its start. */
export const settings = {
  upstream: process.env['BENCH_UPSTREAM'] ?? 'http://127.0.0.1:9',
  connections: Number(process.env['BENCH_CONNECTIONS'] ?? 1024),
  /** Number of keys, groups and so on, for the measurements of growth. */
  size: Number(process.env['BENCH_SIZE'] ?? 0),
}

export function portOf (address: string | { port: number } | null): number {
  return typeof address === 'object' && address !== null ? address.port : 0
}
