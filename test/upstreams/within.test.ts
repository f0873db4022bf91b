import t from 'tap'
import { timerMs, within } from '../../plugins/upstreams/within.js'

t.test('a time that no timer can have is none', async (t) => {
  t.equal(timerMs(10.2), 11)
  t.equal(timerMs(2 ** 31), null)
  t.equal(timerMs(Infinity), null)
  t.equal(await within(Infinity, Promise.resolve('late')), 'late')
  t.equal(await within(1_000, Promise.resolve('soon')), 'soon')
  await t.rejects(within(5, new Promise(() => {})), { message: 'no answer' })
})
