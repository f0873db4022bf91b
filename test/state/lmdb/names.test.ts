import t from 'tap'
import { GroupNames } from '../../../plugins/state/lmdb/names.js'

t.test('a name of up to 500 bytes is taken, whatever its characters, and a longer one is refused', async (t) => {
  const names = new GroupNames('chat', 10)
  for (const name of ['x'.repeat(500), '\u00e9'.repeat(250), '\u20ac'.repeat(166), '\u{1F600}'.repeat(125)]) {
    t.equal(names.hold(name), `4:chat:${name}`)
  }
  for (const name of ['x'.repeat(501), '\u00e9'.repeat(251), '\u20ac'.repeat(167), '\u{1F600}'.repeat(126)]) {
    t.throws(() => names.hold(name), { message: /so long a name/ })
  }
})
