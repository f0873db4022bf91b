import t from 'tap'
import { Calendar } from '../../bin/usage/calendar.js'

t.test('days of a time zone, asked once or again', async (t) => {
  const berlin = new Calendar('Europe/Berlin')
  const late = Date.parse('2027-01-31T23:30:00Z')
  t.equal(berlin.day(late), '2027-02-01')
  t.equal(berlin.day(late + 60_000), '2027-02-01', 'within the same quarter of an hour')
  t.equal(berlin.day(late - 60 * 60_000), '2027-01-31')
})
