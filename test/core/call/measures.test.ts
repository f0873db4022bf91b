import t from 'tap'
import { leaves, leafTokens, tokensOf } from '../../../plugins/core/call/measures.js'

const usage = { input: 1, cache_read: 2, cache_write_5m: 4, cache_write_1h: 8, cache_write: 16, tool_input: 32, output: 64, reasoning: 128 }

t.test('the tokens of a usage stand in the order of its leaves, and each in one direction', async (t) => {
  t.strictSame(leafTokens(usage), leaves.map(({ type }) => usage[type]))
  t.strictSame([tokensOf(usage, 'input'), tokensOf(usage, 'output')], [63, 192])
})
