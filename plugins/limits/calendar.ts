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

interface Wall {
  readonly year: number
  /** From 1. */
  readonly month: number
  readonly day: number
}

const hourMs = 3_600_000
const dayMs = 24 * hourMs

const zones = new Map<string, Intl.DateTimeFormat>()

export function spanOf (period: Period, timezone: string, now: number): Span {
  if (period === 'total') return { name: '', from: -Infinity, endsAt: null }
  if (period === 'hour') return hourOf(timezone, now)
  const first = firstDay(period, wallAt(timezone, now))
  const next = nextDay(period, first)
  return { name: nameOf(period, first), from: startOf(timezone, first), endsAt: startOf(timezone, next) }
}

/** Hours by elapsed time: when clocks are set back, two hours with the same local name are two periods. */
function hourOf (timezone: string, now: number): Span {
  const offset = offsetAt(timezone, now)
  const from = Math.floor((now + offset) / hourMs) * hourMs - offset
  return { name: new Date(from).toISOString().slice(0, 16), from, endsAt: from + hourMs }
}

function firstDay (period: Period, { year, month, day }: Wall): Wall {
  if (period === 'month') return { year, month, day: 1 }
  if (period === 'day') return { year, month, day }
  const weekday = (new Date(Date.UTC(year, month - 1, day)).getUTCDay() + 6) % 7
  return dayAfter({ year, month, day }, -weekday)
}

function nextDay (period: Period, first: Wall): Wall {
  // After December a thirteenth, which `Date` takes for the next January.
  if (period === 'month') return { ...first, month: first.month + 1 }
  return dayAfter(first, period === 'week' ? 7 : 1)
}

function dayAfter ({ year, month, day }: Wall, days: number): Wall {
  const date = new Date(Date.UTC(year, month - 1, day + days))
  return { year: date.getUTCFullYear(), month: date.getUTCMonth() + 1, day: date.getUTCDate() }
}

function nameOf (period: Period, { year, month, day }: Wall): string {
  const text = new Date(Date.UTC(year, month - 1, day)).toISOString()
  return text.slice(0, period === 'month' ? 7 : 10)
}

/** The first moment of a local day. If clocks are set forward over midnight, the moment at which that happens. */
function startOf (timezone: string, { year, month, day }: Wall): number {
  const midnight = Date.UTC(year, month - 1, day)
  const before = midnight - offsetAt(timezone, midnight - dayMs)
  const after = midnight - offsetAt(timezone, midnight + dayMs)
  const earlier = Math.min(before, after)
  return earlier + offsetAt(timezone, earlier) === midnight ? earlier : Math.max(before, after)
}

function wallAt (timezone: string, now: number): Wall {
  const local = new Date(now + offsetAt(timezone, now))
  return { year: local.getUTCFullYear(), month: local.getUTCMonth() + 1, day: local.getUTCDate() }
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
