import t from 'tap'
import type { TokenUsage } from '../../plugins/core/types.js'
import { totalTokens } from '../../plugins/core/call/measures.js'
import { addCounted, type Counted } from '../../plugins/usage/count-tokens.js'

/** Each leaf a digit of its own. */
const digits: TokenUsage = {
  input: 1,
  cache_read: 10,
  cache_write_5m: 100,
  cache_write_1h: 1_000,
  cache_write: 10_000,
  tool_input: 100_000,
  output: 1_000_000,
  reasoning: 10_000_000,
}
const twice = Object.fromEntries(Object.entries(digits).map(([leaf, tokens]) => [leaf, 2 * tokens]))

t.test('the total has every leaf once', async (t) => {
  t.equal(totalTokens(digits), 11_111_111)
})

t.test('two parts of one work have the leaves of both, and a contradiction in either', async (t) => {
  const counted = (inconsistent: boolean, modality: string): Counted =>
    ({ usage: digits, modalities: [{ direction: 'input', modality, tokens: 1 }], inconsistent })
  const both = addCounted(counted(false, 'text'), counted(false, 'image'))
  t.strictSame(both.usage, twice)
  t.strictSame(both.modalities.map(({ modality }) => modality), ['text', 'image'])
  t.equal(both.inconsistent, false)
  t.equal(addCounted(counted(true, 'text'), counted(false, 'text')).inconsistent, true)
  t.equal(addCounted(counted(false, 'text'), counted(true, 'text')).inconsistent, true)
})
