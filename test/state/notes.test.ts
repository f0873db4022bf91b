import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { engines } from './engines.js'

for (const { name, skip, open } of engines) {
  t.test(`${name}: a note is there for its time, for all who share it`, { skip }, async (t) => {
    const { state, another, close } = await open()
    t.teardown(close)
    t.equal(await state.notes.read('responses:resp_1'), null)
    await state.notes.write('responses:resp_1', 'a', 60_000)
    await state.notes.write('responses:resp_2', 'b', 60_000)
    await state.notes.write('responses:resp_1', 'c', 60_000)
    const other = another === null ? state : await another()
    t.equal(await other.notes.read('responses:resp_1'), 'c')
    t.equal(await other.notes.read('responses:resp_2'), 'b')
  })
  t.test(`${name}: a note can be taken once it is written, whatever is read meanwhile`, { skip }, async (t) => {
    const { state: { notes }, close } = await open()
    t.teardown(close)
    const ended = new AbortController()
    const reading = (async () => {
      while (!ended.signal.aborted) {
        await notes.read('other')
        await turn()
      }
    })()
    const taken: unknown[] = []
    for (let at = 0; at < 30; at += 1) {
      await notes.write(`note ${at}`, 'a', 60_000)
      taken.push(await notes.take?.(`note ${at}`))
    }
    ended.abort()
    await reading
    t.strictSame(taken, Array(30).fill('a'))
  })
}
