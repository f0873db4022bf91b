import type { Readings, Sums } from './readings.js'

/** What each histogram of the charts has, by its name in the data of the page. */
interface ByHistogram<T> {
  readonly duration: T
  readonly firstChunk: T
  readonly overhead: T
}

export function byHistogram<T> (read: (name: string) => T): ByHistogram<T> {
  return {
    duration: read('request_duration_seconds'),
    firstChunk: read('time_to_first_chunk_seconds'),
    overhead: read('overhead_seconds'),
  }
}

/**
 * The data of the charts: counts since the start of the process, so that any two points give a rate. Of histograms they are by bucket,
 * whose bounds are sent separately.
 */
interface Point extends ByHistogram<readonly number[]> {
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly outcomes: Sums
  readonly tokens: Sums
  readonly lookups: Sums
  readonly active: number
}

const intervalMs = 2_000
const maxPoints = 300

function readPoint (readings: Readings): Point {
  return {
    at: Date.now(),
    outcomes: readings.sums('requests_total', 'outcome'),
    tokens: readings.sums('tokens_total', 'type'),
    lookups: readings.sums('key_lookups_total', 'result'),
    active: readings.total('active_requests'),
    ...byHistogram((name) => readings.buckets(name)),
  }
}

/** The last ten minutes, a point every two seconds, so that the page has data as soon as it is opened. */
export class History {
  readonly #readings: Readings
  readonly #timer: NodeJS.Timeout
  #points: Point[] = []

  /** `onPoint`: called with each point. */
  constructor (readings: Readings, onPoint: () => void) {
    this.#readings = readings
    this.#take()
    this.#timer = setInterval(() => {
      onPoint()
      this.#take()
    }, intervalMs).unref()
  }

  /** Points younger than `at`. */
  after (at: number): readonly Point[] {
    return this.#points.filter((point) => point.at > at)
  }

  stop (): void {
    clearInterval(this.#timer)
  }

  #take (): void {
    this.#points = [...this.#points.slice(1 - maxPoints), readPoint(this.#readings)]
  }
}
