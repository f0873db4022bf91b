import t from 'tap'
import { textAt } from '../../../plugins/core/body/json-text.js'

t.test('what a value of a document says', async (t) => {
  for (const [written, said] of [['"a\\u0062"', 'ab'], ['""', ''], ['5', null], ['null', null], ['{}', null], ['"a', null]] as const) {
    t.equal(textAt(Buffer.from(written), [0, written.length]), said, written)
  }
})
