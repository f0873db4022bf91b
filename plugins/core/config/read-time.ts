/** Dates in options and command lines. */
const form = /^(\d{4})-(\d\d)-(\d\d)(?:T\d\d:\d\d(?::\d\d(?:[.]\d+)?)?(?:Z|[+-]\d\d:\d\d))?$/

/**
 * Milliseconds since the epoch of `2027-01-01`, which begins in UTC, or `2027-01-01T00:00:00Z`. NaN for any other form, for one without a
 * zone, which would mean another moment on each machine, and for a day that does not exist: `Date.parse` reads February 30 as March 2.
 */
export function readTime (text: string): number {
  const [, year, month, day] = form.exec(text) ?? []
  const lastDay = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate()
  return Number(day) <= lastDay ? Date.parse(text) : NaN
}
