/** Each long run in short. Times are told, not judged: the machine may be busy. */
import t from 'tap'
import { checks } from './checks.js'

for (const [name, { what, short }] of Object.entries(checks)) {
  if (short === null) continue
  t.test(`${name}: ${what}`, async (t) => {
    const { violations, slow, ...figures } = await short()
    t.comment({ ...figures, slow })
    t.same(violations, [])
  })
}
