import fc from 'fast-check'
import t from 'tap'
import { concerns, KnownKeys } from '../../plugins/auth/known-keys.js'
import type { Key, KeyChange } from '../../plugins/core/types.js'

function keyOf (id: string, group: string): Key {
  return { id, group, disabled: false, expiresAt: null, limits: {} }
}

const id = fc.constantFrom('a', 'b', 'c', 'd')
const digest = fc.constantFrom('1', '2', '3', '4', '5')
const group = fc.constantFrom('g', 'h', '*')

t.test('a change forgets the keys that it concerns, and those alone, whatever was loaded, replaced or pushed out before', (t) => {
  const step = fc.oneof(
    fc.record({ load: digest, id, group: fc.constantFrom('g', 'h') }),
    fc.record({ load: fc.constant(null), change: fc.record({ id, digest, group }, { requiredKeys: [] }) }),
    fc.record({ load: fc.constant(null), change: fc.record({ id, digest }, { requiredKeys: [] }) })
  )
  fc.assert(fc.property(fc.array(step, { maxLength: 40, size: 'large' }), (steps) => {
    const known = new KnownKeys(3)
    for (const each of steps) {
      if (each.load !== null) {
        known.set(each.load, { key: keyOf(each.id, each.group), loadedAt: 0 })
        continue
      }
      const change: KeyChange = each.change
      const before = [...known.entries()]
      const concerned = before.filter(([digest, { key }]) => concerns(change, digest, key)).map(([digest]) => digest)
      t.strictSame(known.forget(change).sort(), concerned.sort())
      t.strictSame([...known.keys()], before.map(([digest]) => digest).filter((digest) => !concerned.includes(digest)))
    }
  }), { numRuns: 200 })
  t.end()
})

t.test('a change of one key among many is no search through all, nor are those that were pushed out kept', (t) => {
  const known = new KnownKeys(1_000)
  for (let n = 0; n < 3_000; n += 1) known.set(`digest ${n}`, { key: keyOf(`key ${n}`, 'g'), loadedAt: 0 })
  const looked: string[] = []
  const peek: typeof known.peek = known.peek.bind(known)
  Object.assign(known, {
    keys: () => { throw new Error('searched') },
    peek: (digest: string) => {
      looked.push(digest)
      return peek(digest)
    },
  })
  t.strictSame(known.forget({ id: 'key 2500', digest: 'digest 2500' }), ['digest 2500'])
  t.strictSame(known.forget({ id: 'key 2600' }), ['digest 2600'])
  t.strictSame(known.forget({ digest: 'digest 2700' }), ['digest 2700'])
  looked.length = 0
  t.strictSame(known.forget({ id: 'key 100', digest: 'digest 2' }), [])
  t.strictSame(looked, ['digest 2'])
  t.equal(known.size, 997)
  t.end()
})
