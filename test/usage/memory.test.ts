/** Short runs of what `test/scripts/usage-memory.ts` does at length, on the kind of mount whose replies this plugin itself moves. */
import t from 'tap'
import { abortStreams, readSlowly } from './memory-load.js'

const mebi = 1024 * 1024
const nobodyAdapted = 2

t.test('a slow reader holds the upstream back, and is metered at the end', async (t) => {
  const { aheadBytes, heldBytes, readBytes, tokens } = await readSlowly(nobodyAdapted, 32, 4)
  t.ok(aheadBytes < 24 * mebi, `the upstream was ${aheadBytes} bytes ahead`)
  t.ok(heldBytes < 2 * mebi, `${heldBytes} bytes were held`)
  t.ok(readBytes >= 32 * mebi)
  t.equal(tokens, 7)
})

t.test('callers that leave leave nothing behind', async (t) => {
  const left = await abortStreams(nobodyAdapted, 300, 20)
  t.ok(left.heapBytes < 3 * mebi, `${left.heapBytes} bytes of heap`)
  t.match(left, { upstreamSockets: 0, settled: 300, missing: { client_abort: 400 } })
  t.strictSame(left.resources, [])
})
