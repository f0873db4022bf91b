import type { Worker } from 'node:cluster'
import { tell, type FromWorker } from './messages.js'
import { Tally } from './tally.js'

/** Nobody waits longer for a worker: its last report counts. */
const flushMs = 1_000

/** What all workers have counted, for the one that asks. */
export class Sums {
  readonly #ready: () => Iterable<Worker>
  readonly #tally = new Tally()
  readonly #flushes = new Map<number, (worker: Worker) => void>()
  #asks = 0

  constructor (ready: () => Iterable<Worker>) {
    this.#ready = ready
  }

  hear (worker: Worker, message: Extract<FromWorker, { type: 'counted' | 'read' | 'flushed' }>): void {
    if (message.type === 'counted') this.#tally.count(worker.id, message.cells)
    else if (message.type === 'read') this.#read(worker, message.id)
    else {
      this.#tally.measure(worker.id, message.gauges, message.upstreams)
      this.#flushes.get(message.id)?.(worker)
    }
  }

  ended (worker: Worker): void {
    this.#tally.bury(worker.id)
    for (const heard of this.#flushes.values()) heard(worker)
  }

  /** Makes all others report, then answers. */
  async #read (worker: Worker, id: number): Promise<void> {
    const others = [...this.#ready()].filter((other) => other !== worker)
    const flush = this.#asks++
    if (others.length > 0) await this.#flush(flush, others)
    this.#flushes.delete(flush)
    tell(worker, { type: 'others', id, series: this.#tally.othersOf(worker.id), upstreams: this.#tally.upstreamsOfOthers(worker.id) })
  }

  async #flush (id: number, others: readonly Worker[]): Promise<void> {
    const awaited = new Set(others)
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, flushMs)
      this.#flushes.set(id, (worker) => {
        awaited.delete(worker)
        if (awaited.size > 0) return
        clearTimeout(timer)
        resolve()
      })
      for (const other of others) tell(other, { type: 'flush', id })
    })
  }
}
