import { Readable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { collectBody } from '../../../plugins/core/body/collect-body.js'

const chunk = Buffer.alloc(64 * 1024)
const chunks = 64

/** All of it is there at once: without a share it is read in one turn. */
function body (onRead: () => void): Readable {
  let left = chunks
  return new Readable({
    read () {
      onRead()
      this.push(left-- > 0 ? chunk : null)
    },
  })
}

t.test('large bodies share a turn of the loop, however many there are', async (t) => {
  const turn = { reads: 0, most: 0 }
  const owner = { settled: false, body: { maxBytes: chunks * chunk.length, heldBytes: 0 } }
  const wholes = [1, 2, 3].map(async () => await new Promise<number | undefined>((resolve) => {
    collectBody(body(() => { turn.reads += 1 }), null, owner, (_, bytes) => resolve(bytes?.length), { bodyPace: null, bodyMemory: null })
  }))
  const collected = Promise.all(wholes)
  for (let lengths: unknown = null; lengths === null;) {
    lengths = await Promise.race([collected, nextTurn(null)])
    turn.most = Math.max(turn.most, turn.reads)
    turn.reads = 0
  }
  t.strictSame(await collected, [1, 2, 3].map(() => chunks * chunk.length))
  // The share, and of each body what it takes to be large and one piece more, twice: a turn may begin between two of theirs.
  t.ok(turn.most <= 2 * (16 + 3 * 6), `${turn.most} pieces of 64 KB in one turn`)
})
