import fc from 'fast-check'
import t from 'tap'
import { periods } from '../../plugins/core/money/budget.js'
import { spanOf } from '../../plugins/limits/calendar.js'

const at = (text: string): number => Date.parse(text)
const shown = (ms: number | null): string | null => ms === null ? null : new Date(ms).toISOString().slice(0, 16)

// By hand, from the time zone database: [period, zone, now, name, from, end].
const cases: ReadonlyArray<readonly [Parameters<typeof spanOf>[0], string, string, string, string, string]> = [
  ['day', 'UTC', '2026-11-22T23:59:59.999Z', '2026-11-22', '2026-11-22T00:00', '2026-11-23T00:00'],
  // Clocks are set forward: a day of 23 hours; and back: one of 25.
  ['day', 'Europe/Berlin', '2026-03-29T12:00:00Z', '2026-03-29', '2026-03-28T23:00', '2026-03-29T22:00'],
  ['day', 'Europe/Berlin', '2026-10-25T12:00:00Z', '2026-10-25', '2026-10-24T22:00', '2026-10-25T23:00'],
  ['month', 'Europe/Berlin', '2026-03-31T21:59:59Z', '2026-03', '2026-02-28T23:00', '2026-03-31T22:00'],
  ['month', 'Europe/Berlin', '2026-03-31T22:00:00Z', '2026-04', '2026-03-31T22:00', '2026-04-30T22:00'],
  ['month', 'UTC', '2028-02-29T12:00:00Z', '2028-02', '2028-02-01T00:00', '2028-03-01T00:00'],
  ['month', 'UTC', '2026-12-31T12:00:00Z', '2026-12', '2026-12-01T00:00', '2027-01-01T00:00'],
  // Weeks begin on Monday, whichever year or ISO week that is in.
  ['week', 'UTC', '2027-01-03T23:59:59Z', '2026-12-28', '2026-12-28T00:00', '2027-01-04T00:00'],
  ['week', 'Europe/Berlin', '2026-10-25T22:59:59Z', '2026-10-19', '2026-10-18T22:00', '2026-10-25T23:00'],
  // A quarter of an hour beside full hours.
  ['day', 'Asia/Kathmandu', '2026-11-22T18:20:00Z', '2026-11-23', '2026-11-22T18:15', '2026-11-23T18:15'],
  ['hour', 'Asia/Kathmandu', '2026-11-22T18:20:00Z', '2026-11-22T18:15', '2026-11-22T18:15', '2026-11-22T19:15'],
  // Two equal hours are two.
  ['hour', 'Europe/Berlin', '2026-10-25T00:30:00Z', '2026-10-25T00:00', '2026-10-25T00:00', '2026-10-25T01:00'],
  ['hour', 'Europe/Berlin', '2026-10-25T01:30:00Z', '2026-10-25T01:00', '2026-10-25T01:00', '2026-10-25T02:00'],
  // A midnight that there is not, and one that there is twice.
  ['day', 'Africa/Cairo', '2026-04-24T12:00:00Z', '2026-04-24', '2026-04-23T22:00', '2026-04-24T21:00'],
  ['day', 'America/Havana', '2026-11-01T12:00:00Z', '2026-11-01', '2026-11-01T04:00', '2026-11-02T05:00'],
]

t.test('periods begin and end as calendars there have them', async (t) => {
  for (const [period, zone, now, name, from, endsAt] of cases) {
    const span = spanOf(period, zone, at(now))
    t.same([span.name, shown(span.from), shown(span.endsAt)], [name, from, endsAt], `${period} ${zone} ${now}`)
  }
  t.same(spanOf('total', 'UTC', 0), { name: '', from: -Infinity, endsAt: null })
})

t.test('every moment is in one period: its own, which ends where the next begins', async () => {
  const zones = [
    'UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kathmandu', 'Australia/Lord_Howe', 'Pacific/Auckland', 'America/St_Johns',
    'Africa/Cairo',
  ]
  fc.assert(fc.property(fc.constantFrom(...periods.filter((period) => period !== 'total')), fc.constantFrom(...zones), fc.integer({
    min: at('2024-01-01'), max: at('2034-01-01'),
  }), (period, zone, now) => {
    const span = spanOf(period, zone, now)
    const end = Number(span.endsAt)
    // An hour of a place that sets its clocks by half an hour is cut by it.
    if (period === 'hour' && zone === 'Australia/Lord_Howe') return
    if (!(span.from <= now && now < end)) throw new Error('it is not in its own')
    for (const inside of [span.from, end - 1]) {
      if (spanOf(period, zone, inside).name !== span.name) throw new Error('a part of it is another')
    }
    const next = spanOf(period, zone, end)
    if (next.from !== end || next.name === span.name) throw new Error('the next one does not follow')
  }), { numRuns: 3_000 })
})
