import t from 'tap'
import { BodyMemory } from '../../../plugins/core/body/body-memory.js'

const holder = (settled = false): { settled: boolean, body: { heldBytes: number } } => ({ settled, body: { heldBytes: 0 } })

t.test('bodies share the memory, and one that has no room beside others is refused and told', async (t) => {
  let refused = 0
  const memory = new BodyMemory(100, () => { refused += 1 })
  const [one, other, third] = [holder(), holder(), holder()]
  t.equal(memory.take(one, 50, 60), 60)
  t.equal(memory.take(one, 60, 60), 60, 'its own bytes count once')
  t.equal(memory.take(other, 30, 80), 40, 'no more than there is')
  t.match(memory.take(other, 41, 41), { code: 'overloaded' })
  t.equal(memory.refusal(third, 1)?.code, 'overloaded')
  t.equal(refused, 2)
  memory.keep(one, 50)
  t.equal(memory.take(third, 10, 10), 10)
  for (const each of [one, one, other]) memory.leave(each)
  t.equal(memory.refusal(third, 1_000), null, 'alone it may be as large as it likes')
  t.equal(memory.take(third, 1_000, 8_000), 8_000)
  t.match(memory.take(one, 91, 91), { code: 'overloaded' })
})

t.test('a request that is settled already holds nothing for ever', async (t) => {
  const memory = new BodyMemory(100, () => {})
  t.equal(memory.take(holder(true), 90, 90), 90)
  t.equal(memory.take(holder(), 90, 90), 90)
})
