/**
 * Calendar periods in a time zone. A period is named by the local date of its first day, so that days of
 * 23 and 25 hours, months of any length and clocks that are set back are all handled.
 */
import type { Period } from '../core/money/budget.js'

export interface Span {
  /** Names the period; unique within its calendar. */
  readonly name: string
  /** Milliseconds since the epoch: it holds from `from` until before `endsAt`; null for ever. */
  readonly from: number
  readonly endsAt: number | null
}

const hourMs = 3_600_000
const dayMs = 24 * hourMs

const zones = new Map<string, Intl.DateTimeFormat>()

export function spanOf (period: Period, timezone: string, now: number): Span {
  if (period === 'total') return { name: '', from: -Infinity, endsAt: null }
  if (period === 'hour') return hourOf(timezone, now)
  const [first, next] = daysOf(period, new Date(now + offsetAt(timezone, now)))
  const name = new Date(first).toISOString().slice(0, period === 'month' ? 7 : 10)
  return { name, from: startOf(timezone, first), endsAt: startOf(timezone, next) }
}

/** Hours by elapsed time: when clocks are set back, two hours with the same local name are two periods. */
function hourOf (timezone: string, now: number): Span {
  const offset = offsetAt(timezone, now)
  const from = Math.floor((now + offset) / hourMs) * hourMs - offset
  return { name: new Date(from).toISOString().slice(0, 16), from, endsAt: from + hourMs }
}

/** The first day of the period and the one after its last, each as midnight of its date in UTC. `local`: its UTC fields show local time. */
function daysOf (period: Period, local: Date): readonly [number, number] {
  const [year, month, day] = [local.getUTCFullYear(), local.getUTCMonth(), local.getUTCDate()]
  // `Date.UTC` takes a thirteenth month and any day for those that they come to.
  if (period === 'month') return [Date.UTC(year, month), Date.UTC(year, month + 1)]
  if (period === 'day') return [Date.UTC(year, month, day), Date.UTC(year, month, day + 1)]
  const monday = day - (local.getUTCDay() + 6) % 7
  return [Date.UTC(year, month, monday), Date.UTC(year, month, monday + 7)]
}

/** The first moment of a local day. If clocks are set forward over midnight, the moment at which that happens. */
function startOf (timezone: string, midnight: number): number {
  const before = midnight - offsetAt(timezone, midnight - dayMs)
  const after = midnight - offsetAt(timezone, midnight + dayMs)
  const earlier = Math.min(before, after)
  return earlier + offsetAt(timezone, earlier) === midnight ? earlier : Math.max(before, after)
}

/** How far clocks there are ahead of UTC, milliseconds. */
export function offsetAt (timezone: string, now: number): number {
  const parts: Record<string, number> = {}
  for (const { type, value } of formatOf(timezone).formatToParts(now)) parts[type] = Number(value)
  const { year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0 } = parts
  return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(now / 1_000) * 1_000
}

function formatOf (timezone: string): Intl.DateTimeFormat {
  const known = zones.get(timezone)
  if (known !== undefined) return known
  const made = new Intl.DateTimeFormat('en', {
    timeZone: timezone,
    calendar: 'gregory',
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  })
  zones.set(timezone, made)
  return made
}
