/**
 * Closed loop: a fixed number of callers, each sending as soon as it was answered; tells throughput and cost.
 * Open loop: requests start by the clock, whatever became of those before; tells latency, counted from the time that a
 * request was due, so that a stall shows in every request that it delayed (no coordinated omission).
 */
import { pollSockets } from './poll.js'
import { Connection, type Exchange, type Timing } from './connection.js'

export interface Address {
  readonly host: string
  readonly port: number
}

export interface Load {
  readonly requests: number
  readonly elapsedMs: number
  /** Milliseconds from due (open loop) or sent (closed loop) to the last byte. */
  readonly latenciesMs: number[]
  /** Milliseconds from sent to the first byte of the body. */
  readonly firstByteMs: number[]
  /** Reads that brought body bytes, for each reply. */
  readonly bodyReads: number[]
}

interface Deferred<T> {
  readonly promise: Promise<T>
  readonly resolve: (value: T) => void
  readonly reject: (error: Error) => void
}

/** `Promise.withResolvers`, which Node 20 does not have. */
function deferred<T> (): Deferred<T> {
  let resolve: (value: T) => void = () => {}
  let reject: (error: Error) => void = () => {}
  const promise = new Promise<T>((_resolve, _reject) => {
    resolve = _resolve
    reject = _reject
  })
  promise.catch(() => {})
  return { promise, resolve, reject }
}

class Samples implements Load {
  requests = 0
  elapsedMs = 0
  readonly latenciesMs: number[] = []
  readonly firstByteMs: number[] = []
  readonly bodyReads: number[] = []

  add (timing: Timing, dueAt: number): void {
    this.requests += 1
    this.latenciesMs.push(timing.endedAt - dueAt)
    this.firstByteMs.push(timing.firstBodyAt - timing.sentAt)
    this.bodyReads.push(timing.bodyReads)
  }
}

/** Keep-alive connections to one target, kept from window to window. */
export class Callers {
  readonly address: Address
  readonly #connections: Connection[] = []
  #fail: (error: Error) => void = () => {}

  constructor (address: Address) {
    this.address = address
  }

  /** `count` open connections; those that the server closed meanwhile are replaced. */
  async take (count: number, fail: (error: Error) => void): Promise<Connection[]> {
    this.#fail = fail
    const alive = this.#connections.filter(connection => connection.alive)
    while (alive.length < count) {
      const batch = Array.from({ length: Math.min(256, count - alive.length) }, () =>
        new Connection(this.address.port, this.address.host, error => this.#fail(error)))
      await Promise.all(batch.map(connection => connection.opened()))
      alive.push(...batch)
    }
    this.#connections.splice(0, Infinity, ...alive)
    return alive.slice(0, count)
  }

  close (): void {
    for (const connection of this.#connections) connection.close()
    this.#connections.length = 0
  }
}

/** A reply that never comes would keep the run waiting without a word. */
const maxOverrunMs = 60_000

async function within<T> (durationMs: number, work: Promise<T>): Promise<T> {
  const late = deferred<never>()
  const timer = setTimeout(
    () => late.reject(new Error(`replies are missing ${maxOverrunMs / 1000} s after the window's end`)), durationMs + maxOverrunMs
  )
  return await Promise.race([work, late.promise]).finally(() => clearTimeout(timer))
}

export async function closedLoop (
  callers: Callers, exchange: () => Exchange, count: number, durationMs: number, polls: boolean
): Promise<Load> {
  const samples = new Samples()
  const failure = deferred<never>()
  const connections = await callers.take(count, failure.reject)
  const startedAt = performance.now()
  const finished = deferred<undefined>()
  let busy = connections.length
  const next = (timing: Timing, connection: Connection): void => {
    samples.add(timing, timing.sentAt)
    if (timing.endedAt - startedAt < durationMs) return connection.send(exchange(), next)
    busy -= 1
    if (busy === 0) finished.resolve(undefined)
  }
  for (const connection of connections) connection.send(exchange(), next)
  const endPolling = polls ? pollSockets() : () => {}
  await within(durationMs, Promise.race([finished.promise, failure.promise])).finally(endPolling)
  samples.elapsedMs = performance.now() - startedAt
  return samples
}

/** A small seeded generator (mulberry32), so that every target gets the same arrivals. */
function seeded (seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}

function poisson (mean: number, random: () => number): number {
  const limit = Math.exp(-mean)
  let product = random()
  let events = 0
  while (product > limit) {
    product *= random()
    events += 1
  }
  return events
}

/**
 * Arrivals come at whole milliseconds, a Poisson-distributed number at each: the finest grain of a timer that does not
 * spin, and a spinning generator would take the processor from the mock upstream beside it.
 */
function arrivals (perSecond: number, durationMs: number): number[] {
  const random = seeded(7)
  const due: number[] = []
  for (let at = 1; at <= durationMs; at++) {
    for (let more = poisson(perSecond / 1000, random); more > 0; more--) due.push(at)
  }
  return due
}

export async function openLoop (
  callers: Callers, exchange: Exchange, perSecond: number, durationMs: number, maxConnections = 256
): Promise<Load> {
  const samples = new Samples()
  const failure = deferred<never>()
  const idle = await callers.take(maxConnections, failure.reject)
  const due = arrivals(perSecond, durationMs)
  const finished = deferred<undefined>()
  const startedAt = performance.now()
  let next = 0
  const pump = (): void => {
    const now = performance.now() - startedAt
    for (; next < due.length && (due[next] ?? 0) <= now && idle.length > 0; next++) {
      const dueAt = startedAt + (due[next] ?? 0)
      idle.pop()?.send(exchange, (timing, connection) => {
        samples.add(timing, dueAt)
        idle.push(connection)
        if (samples.requests === due.length) finished.resolve(undefined)
      })
    }
    if (next < due.length) setTimeout(pump, 1)
  }
  pump()
  await within(durationMs, Promise.race([finished.promise, failure.promise]))
  samples.elapsedMs = performance.now() - startedAt
  return samples
}
