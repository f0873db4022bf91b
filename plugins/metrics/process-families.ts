/**
 * Metrics that every Node.js process has, under the names of prom-client, for processes whose host has none: the few that the dashboards
 * use. With several workers, memory and processor time are summed, and the worst event loop is reported.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Aggregator, CatalogueRow } from './catalogue.js'
import type { ValueCell } from './families.js'
import type { CountListener, Family } from './store.js'

const resolutionMs = 10
/** About the time between two scrapes, so that each sees what happened since the one before. */
const windowMs = 15_000

interface Delays {
  readonly p50: number
  readonly p99: number
  readonly max: number
}

const onTime: Delays = { p50: 0, p99: 0, max: 0 }

/**
 * Delay of the event loop in this window and in the one before, in seconds. Reading resets nothing, so that readers do not disturb each
 * other.
 */
export class LoopDelays {
  readonly #histogram = monitorEventLoopDelay({ resolution: resolutionMs })
  #before = onTime
  #since = performance.now()

  constructor () {
    this.#histogram.enable()
  }

  read (now = performance.now()): Delays {
    const current = this.#current()
    const worst = {
      p50: Math.max(current.p50, this.#before.p50),
      p99: Math.max(current.p99, this.#before.p99),
      max: Math.max(current.max, this.#before.max),
    }
    if (now - this.#since >= windowMs) {
      this.#before = current
      this.#since = now
      this.#histogram.reset()
    }
    return worst
  }

  #current (): Delays {
    const seconds = (nanoseconds: number): number => Math.max(nanoseconds / 1e9 - resolutionMs / 1e3, 0)
    return { p50: seconds(this.#histogram.percentile(50)), p99: seconds(this.#histogram.percentile(99)), max: seconds(this.#histogram.max) }
  }
}

/** Without a unit: these do not go to OpenTelemetry, whose hosts have such metrics of their own. */
function rowOf (type: 'counter' | 'gauge', aggregator: Aggregator, help: string): CatalogueRow {
  return { type, help, labels: [], unit: '', aggregator, buckets: [] }
}

function gauge (name: string, aggregator: Aggregator, help: string, read: () => number): Family {
  return { name, row: rowOf('gauge', aggregator, help), read: () => [{ labels: {}, text: '', value: read() }] }
}

const cpuSeconds = 'process_cpu_seconds_total'

/** Processor time is counted as it passes, so that what a worker used stays counted when it has ended. */
export class ProcessFamilies {
  readonly families: readonly Family[]
  readonly #counted: CountListener | null
  readonly #cpu: ValueCell = { labels: {}, text: '', value: 0 }

  constructor (counted: CountListener | null) {
    this.#counted = counted
    const row = rowOf('counter', 'sum', 'Processor time that was used, of user and system.')
    const delays = new LoopDelays()
    const startedAt = Date.now() / 1e3 - process.uptime()
    this.families = [
      { name: cpuSeconds, row, read: () => this.#readCpu() },
      gauge('process_start_time_seconds', 'min', 'When the process began, since the epoch.', () => startedAt),
      gauge('process_resident_memory_bytes', 'sum', 'Memory that is resident.', () => process.memoryUsage.rss()),
      gauge('nodejs_heap_size_used_bytes', 'sum', 'Heap that is in use.', () => process.memoryUsage().heapUsed),
      gauge('nodejs_external_memory_bytes', 'sum', 'Memory outside of the heap, buffers for one.', () => process.memoryUsage().external),
      gauge(
        'nodejs_eventloop_lag_p50_seconds', 'max', 'Half of all turns of the event loop were at most so late.', () => delays.read().p50
      ),
      gauge(
        'nodejs_eventloop_lag_p99_seconds', 'max', '99 % of all turns of the event loop were at most so late.', () => delays.read().p99
      ),
      gauge('nodejs_eventloop_lag_max_seconds', 'max', 'The latest turn of the event loop.', () => delays.read().max),
    ]
  }

  sample (): void {
    const { user, system } = process.cpuUsage()
    this.#cpu.value = (user + system) / 1e6
    this.#counted?.(cpuSeconds, this.#cpu)
  }

  #readCpu (): readonly ValueCell[] {
    this.sample()
    return [this.#cpu]
  }
}
