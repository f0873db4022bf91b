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
}
