import t from 'tap'
import { Calendar } from '../../bin/sums/calendar.js'

t.test('days of a time zone, asked once or again', async (t) => {
  const berlin = new Calendar('Europe/Berlin')
  const late = Date.parse('2027-01-31T23:30:00Z')
  t.equal(berlin.day(late), '2027-02-01')
  t.equal(berlin.day(late + 60_000), '2027-02-01', 'within the same quarter of an hour')
  t.equal(berlin.day(late - 60 * 60_000), '2027-01-31')
})

t.test('a date begins with its first moment, also where clocks are set forward over midnight', async (t) => {
  for (const [zone, date, begin] of [
    ['UTC', '2027-01-31', '2027-01-31T00:00:00.000Z'],
    ['Europe/Berlin', '2027-03-28', '2027-03-27T23:00:00.000Z'],
    ['America/Santiago', '2027-09-05', '2027-09-05T04:00:00.000Z'],
    ['America/Havana', '2027-11-07', '2027-11-07T04:00:00.000Z'],
    ['Atlantic/Azores', '2027-03-28', '2027-03-28T01:00:00.000Z'],
    ['Africa/Cairo', '2027-04-30', '2027-04-29T22:00:00.000Z'],
    ['Pacific/Kiritimati', '2027-01-31', '2027-01-30T10:00:00.000Z'],
  ] as const) {
    const calendar = new Calendar(zone)
    const from = Number(calendar.read('--from', date))
    t.equal(new Date(from).toISOString(), begin, zone)
    t.equal(calendar.day(from), date)
    t.not(calendar.day(from - 1), date)
  }
})

t.test('letters that others read as another zone are given to them as the one that was meant', async (t) => {
  for (const [given, zone] of [['PST', 'America/Los_Angeles'], ['UTC', 'UTC'], ['Asia/Kolkata', 'Asia/Kolkata']] as const) {
    t.equal(new Calendar(given).zone, zone)
  }
})
