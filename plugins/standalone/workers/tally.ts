import type { UpstreamsStatus } from '../../core/upstream/upstream-status.js'
import type { Counted, WireSeries } from './messages.js'

/** What each worker has counted, kept by the primary: counts outlive their worker, current values do not. */
export class Tally {
  readonly #counts = new Map<number, Map<number, WireSeries>>()
  readonly #gauges = new Map<number, readonly WireSeries[]>()
  readonly #upstreams = new Map<number, UpstreamsStatus>()
  /** Counts of all that have ended, by name and labels. */
  #gone = new Map<string, WireSeries>()

  count (worker: number, cells: readonly Counted[]): void {
    const counts = this.#counts.get(worker) ?? new Map<number, WireSeries>()
    this.#counts.set(worker, counts)
    for (const [id, numbers, series = counts.get(id)] of cells) {
      if (series !== undefined) counts.set(id, { ...series, numbers })
    }
  }

  measure (worker: number, gauges: readonly WireSeries[], upstreams: UpstreamsStatus): void {
    this.#gauges.set(worker, gauges)
    this.#upstreams.set(worker, upstreams)
  }

  /** Adds the counts of a worker that has ended to those of earlier ones. */
  bury (worker: number): void {
    for (const series of this.#counts.get(worker)?.values() ?? []) {
      const key = `${series.name}{${series.text}}`
      const known = this.#gone.get(key)
      const numbers = known === undefined ? series.numbers : series.numbers.map((number, index) => number + Number(known.numbers[index]))
      this.#gone.set(key, { ...series, numbers })
    }
    this.#counts.delete(worker)
    this.#gauges.delete(worker)
    this.#upstreams.delete(worker)
  }

  /** All series except the worker's own. */
  othersOf (worker: number): WireSeries[] {
    const counts = [...this.#counts].flatMap(([id, cells]) => id === worker ? [] : [...cells.values()])
    const gauges = [...this.#gauges].flatMap(([id, cells]) => id === worker ? [] : cells)
    return [...this.#gone.values(), ...counts, ...gauges]
  }

  /** How all others see the upstreams. */
  upstreamsOfOthers (worker: number): UpstreamsStatus[] {
    return [...this.#upstreams].flatMap(([id, upstreams]) => id === worker ? [] : [upstreams])
  }
}
