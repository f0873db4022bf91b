import type { Cell, Family } from '../../metrics/index.js'
import { nothingKnown, type UpstreamsStatus } from '../../core/upstream/upstream-status.js'
import type { ProcessPeers } from '../process-peers.js'
import type { Counted, FromWorker, ToWorker, WireSeries } from './messages.js'

/** The primary may be busy starting a worker. */
const refreshMs = 2_000

/**
 * The other workers, as one of them sees them: reports to the primary what was counted, once per turn of the event loop, and asks it for
 * the others' counts. A worker that is killed loses what it counted in its last turn, and nothing else.
 */
export class WorkerPeers implements ProcessPeers {
  readonly #send: (message: FromWorker) => void
  readonly #ids = new Map<Cell, number>()
  readonly #changed = new Map<Cell, string>()
  readonly #asked = new Map<number, () => void>()
  #families: readonly Family[] = []
  #others: readonly WireSeries[] = []
  #ownUpstreams: () => UpstreamsStatus = () => nothingKnown
  #otherUpstreams: readonly UpstreamsStatus[] = []
  #asks = 0

  constructor (send: (message: FromWorker) => void) {
    this.#send = send
  }

  readonly counted = (name: string, cell: Cell): void => {
    if (this.#changed.size === 0) setImmediate(() => this.flush())
    this.#changed.set(cell, name)
  }

  join (families: readonly Family[]): void {
    this.#families = families
  }

  joinUpstreams (own: () => UpstreamsStatus): void {
    this.#ownUpstreams = own
  }

  async upstreams (): Promise<readonly UpstreamsStatus[]> {
    await this.refresh()
    return this.#otherUpstreams
  }

  flush (): void {
    if (this.#changed.size === 0) return
    const cells = [...this.#changed].map(([cell, name]) => this.#tell(cell, name))
    this.#changed.clear()
    this.#send({ type: 'counted', cells })
  }

  #tell (cell: Cell, name: string): Counted {
    const id = this.#ids.get(cell)
    if (id !== undefined) return [id, numbersOf(cell)]
    this.#ids.set(cell, this.#ids.size)
    return [this.#ids.size - 1, numbersOf(cell), wireOf(cell, name)]
  }

  async refresh (): Promise<void> {
    const id = this.#asks++
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, refreshMs).unref()
      this.#asked.set(id, () => {
        clearTimeout(timer)
        resolve()
      })
      this.#send({ type: 'read', id })
    })
    this.#asked.delete(id)
  }

  cells (name: string, bounds: readonly number[]): readonly Cell[] {
    return this.#others.filter((series) => series.name === name).map((series) => cellOf(series, bounds))
  }

  /** Handles a message of the primary. */
  hear (message: ToWorker): void {
    if (message.type === 'flush') {
      this.flush()
      this.#send({ type: 'flushed', id: message.id, gauges: this.#gauges(), upstreams: this.#ownUpstreams() })
    } else if (message.type === 'others') {
      this.#others = message.series
      this.#otherUpstreams = message.upstreams
      this.#asked.get(message.id)?.()
    }
  }

  #gauges (): WireSeries[] {
    const gauges = this.#families.filter(({ row }) => row.type === 'gauge')
    return gauges.flatMap(({ name, read }) => read().map((cell) => wireOf(cell, name)))
  }
}

function numbersOf (cell: Cell): number[] {
  return 'buckets' in cell ? [cell.sum, cell.count, ...cell.buckets.map(({ count }) => count)] : [cell.value]
}

function wireOf (cell: Cell, name: string): WireSeries {
  return { name, text: cell.text, labels: cell.labels, numbers: numbersOf(cell) }
}

function cellOf ({ labels, text, numbers }: WireSeries, bounds: readonly number[]): Cell {
  const [first = 0, count = 0, ...counts] = numbers
  if (bounds.length === 0) return { labels, text, value: first }
  return { labels, text, sum: first, count, buckets: [...bounds, Infinity].map((upTo, index) => ({ upTo, count: counts[index] ?? 0 })) }
}
