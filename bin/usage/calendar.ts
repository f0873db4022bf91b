/** Days and months as a time zone has them. */
import { spanOf } from '../../plugins/limits/calendar.js'
import { readDate, UsageError } from '../io.js'

/** All offsets from UTC are whole numbers of these. */
const quarterMs = 15 * 60_000
const halfDayMs = 12 * 60 * 60_000

export class Calendar {
  /** IANA name. */
  readonly zone: string
  readonly #parts: Intl.DateTimeFormat
  /** Days by quarter of an hour: to ask for each record costs as much as all the rest. */
  readonly #days = new Map<number, string>()

  /** `zone`: IANA name, such as `Europe/Berlin`. Throws UsageError. */
  constructor (zone: string) {
    try {
      this.#parts = new Intl.DateTimeFormat('en-CA', {
        timeZone: zone,
        year: 'numeric',
        month: '2-digit',
        day: '2-digit',
        hour: '2-digit',
        minute: '2-digit',
        second: '2-digit',
        hourCycle: 'h23',
      })
    } catch {
      throw new UsageError(`--timezone must be an IANA time zone such as Europe/Berlin, not ${zone}`)
    }
    // What others read in letters such as IST, PostgreSQL for one, may be another zone, or one without summer time.
    this.zone = zone.includes('/') ? zone : this.#parts.resolvedOptions().timeZone
  }

  /** `2027-01-31` */
  day (time: number): string {
    const quarter = Math.floor(time / quarterMs)
    const known = this.#days.get(quarter)
    if (known !== undefined) return known
    const day = new Date(this.#local(quarter * quarterMs)).toISOString().slice(0, 10)
    this.#days.set(quarter, day)
    return day
  }

  /** The moment of a date as a command line has it: one without a time begins at midnight here. Null for none. Throws UsageError. */
  read (option: string, text: string | undefined): number | null {
    const date = readDate(option, text)
    if (date === null || text?.includes('T') === true) return date
    // However the clock is changed at midnight, noon is of the same day.
    const noon = date + halfDayMs
    return spanOf('day', this.zone, noon - (this.#local(noon) - noon)).from
  }

  /** What clocks here show, as if it were UTC. */
  #local (time: number): number {
    const of = new Map(this.#parts.formatToParts(time).map(({ type, value }) => [type, Number(value)]))
    const part = (type: Intl.DateTimeFormatPartTypes): number => Number(of.get(type))
    return Date.UTC(part('year'), part('month') - 1, part('day'), part('hour'), part('minute'), part('second'))
  }
}
