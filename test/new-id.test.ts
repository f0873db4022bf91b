import t from 'tap'
import { newId } from '../plugins/new-id.js'

t.test('ids are random UUIDs, and none comes twice', async (t) => {
  const ids = Array.from({ length: 1_000 }, newId)
  for (const id of ids) t.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  t.equal(new Set(ids).size, ids.length)
  for (const place of [0, 9, 15, 20, 35]) t.equal(new Set(ids.map((id) => id[place])).size, 16, `each digit comes at ${place}`)
})
