import type { MetricFamily, ValueReading } from '../core/recorder.js'
import { prefix, Readings } from './readings.js'

const dayMs = 24 * 60 * 60_000
/** Days that are kept: no month has more. */
const maxDays = 31

/** First day of each time range of the costs. */
const firstDays = new Map<string, (now: number) => number>(Object.entries({
  today: dayOf,
  week: (now: number) => dayOf(now) - 6,
  month: (now: number) => dayOf(now) + 1 - new Date(now).getUTCDate(),
}))

/** The cost counters at the beginning of a day; days since the epoch in UTC. */
interface Beginning {
  readonly day: number
  readonly values: ReadonlyMap<string, number>
}

/** Counters have the costs since the start of the process; their values at the beginning of each day give the costs of days. */
export class CostDays {
  readonly #readings: Readings
  readonly #startedOn: number
  #days: Beginning[] = []
  #today: number

  constructor (readings: Readings) {
    this.#readings = readings
    this.#startedOn = this.#today = dayOf(Date.now())
  }

  /** Must be called often: a day begins with its first call. */
  note (now = Date.now()): void {
    const day = dayOf(now)
    // A clock that is set back is in a known day.
    if (day <= this.#today) return
    this.#today = day
    const values = new Map(this.#readings.values('cost_total').map((cell) => [nameOf(cell), cell.value]))
    this.#days = [...this.#days.slice(1 - maxDays), { day, values }]
  }

  /** The costs of `today`, the last seven days (`week`) or this `month`, at most since the start; of any other range, since the start. */
  readings (range: string | null): Readings {
    const now = Date.now()
    this.note(now)
    const first = firstDays.get(range ?? '')?.(now) ?? -Infinity
    const before = first <= this.#startedOn ? undefined : this.#days.find(({ day }) => day >= first)?.values
    if (before === undefined) return this.#readings
    const read = (): readonly ValueReading[] => this.#readings.values('cost_total').flatMap((cell) => {
      const value = cell.value - (before.get(nameOf(cell)) ?? 0)
      return value > 0 ? [{ ...cell, value }] : []
    })
    return new Readings(() => [{ name: `${prefix}cost_total`, read }])
  }
}

/** By the counters: an app that continues another one's counts, as after a reload, has its days. */
const known = new WeakMap<readonly MetricFamily[], CostDays>()

export function costDaysOf (families: readonly MetricFamily[]): CostDays {
  const days = known.get(families) ?? new CostDays(new Readings(() => families))
  known.set(families, days)
  return days
}

function dayOf (now: number): number {
  return Math.floor(now / dayMs)
}

function nameOf ({ labels }: ValueReading): string {
  return JSON.stringify(labels)
}
