import t from 'tap'
import { requestId } from '../../plugins/core/request-id.js'

t.test('request ids are version 4 UUIDs, each another, with every random bit in use', async (t) => {
  const ids = Array.from({ length: 2_000 }, requestId)
  t.equal(new Set(ids).size, ids.length)
  t.ok(ids.every((id) => /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(id)))
  for (const at of Array(36).keys()) {
    const seen = new Set(ids.map((id) => id[at])).size
    t.equal(seen, [8, 13, 14, 18, 23].includes(at) ? 1 : at === 19 ? 4 : 16, `position ${at}`)
  }
})
