/** Days and months in a time zone. */
import { offsetAt, spanOf } from '../../plugins/limits/calendar.js'
import { readDate, UsageError } from '../io.js'

/** All offsets from UTC are whole numbers of quarter hours. */
const quarterMs = 15 * 60_000
const halfDayMs = 12 * 60 * 60_000

export class Calendar {
  /** IANA name. */
  readonly zone: string
  /** Days by quarter of an hour: computing one for each record costs as much as all the rest. */
  readonly #days = new Map<number, string>()

  /** `zone`: IANA name, such as `Europe/Berlin`. Throws UsageError. */
  constructor (zone: string) {
    this.zone = nameOf(zone)
  }

  /** `2027-01-31` */
  day (time: number): string {
    const quarter = Math.floor(time / quarterMs)
    const known = this.#days.get(quarter)
    if (known !== undefined) return known
    const from = quarter * quarterMs
    const day = new Date(from + offsetAt(this.zone, from)).toISOString().slice(0, 10)
    this.#days.set(quarter, day)
    return day
  }

  /** The moment of a date on the command line; without a time it begins at midnight in this zone. Null for none. Throws UsageError. */
  read (option: string, text: string | undefined): number | null {
    const date = readDate(option, text)
    if (date === null || text?.includes('T') === true) return date
    // However the clock changes at midnight, noon is on the same day.
    const noon = date + halfDayMs
    return spanOf('day', this.zone, noon - offsetAt(this.zone, noon)).from
  }
}

/**
 * Abbreviations such as IST may be another zone elsewhere, for example in PostgreSQL, or one without summer time; `+02:00`, which Node
 * accepts from version 22 on, is two hours behind UTC there.
 */
function nameOf (zone: string): string {
  if (/^[a-z]/i.test(zone)) {
    try {
      const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: zone }).resolvedOptions()
      return zone.includes('/') ? zone : timeZone
    } catch {}
  }
  throw new UsageError(`--timezone must be an IANA time zone such as Europe/Berlin, not ${zone}`)
}
