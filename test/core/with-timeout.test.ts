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
  await t.rejects(withTimeout(5, new Promise(() => {})), { message: 'no answer within 5 ms' })
})
