import { getActiveResourcesInfo } from 'node:process'
import t from 'tap'
import { timerMs, withTimeout } from '../../plugins/core/with-timeout.js'

t.test('a time that no timer can have is none', async (t) => {
  t.equal(timerMs(10.2), 11)
  t.equal(timerMs(2 ** 31 - 1.5), 2 ** 31 - 1)
  t.equal(timerMs(2 ** 31 - 0.5), null, 'rounded up it would be too long, and end at once')
  t.equal(timerMs(2 ** 31), null)
  t.equal(timerMs(Infinity), null)
  t.equal(await withTimeout(Infinity, Promise.resolve('late')), 'late')
  t.equal(await withTimeout(1_000, Promise.resolve('soon')), 'soon')
})

t.test('an answer that does not come keeps no process from its end', async (t) => {
  const before = getActiveResourcesInfo().length
  const late = withTimeout(20, new Promise(() => {}))
  t.equal(getActiveResourcesInfo().length, before)
  // This test has to wait for it.
  const other = setTimeout(() => {}, 60_000)
  await t.rejects(late, { message: 'no answer within 20 ms' })
  clearTimeout(other)
})
