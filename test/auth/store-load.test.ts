/** Short runs of what `test/scripts/key-stores.ts` does at length. */
import t from 'tap'
import { withoutRedis } from '../state/redis/server.js'
import { flood, growKeys, type EngineName } from './store-load.js'

const mebi = 1024 * 1024
/** Longer than a slow machine takes: no right key is renewed meanwhile. */
const hour = 3_600_000

const engines: ReadonlyArray<readonly [name: EngineName, skip: string | false]> = [['lmdb', false], ['redis', withoutRedis]]

for (const [engine, skip] of engines) {
  t.test(`keys that no cache can hold, in ${engine}`, { skip }, async (t) => {
    const [few, many] = await growKeys(engine, [1_000, 10_000], 500, 2_000)
    t.match([few?.cacheEntries, many?.cacheEntries], [500, 500], 'the cache keeps its size')
    t.ok(Number(many?.cacheBytes) < mebi, `${many?.cacheBytes} bytes of heap`)
    t.comment(`a look-up among 10,000 keys takes ${(Number(many?.findUs) / Number(few?.findUs)).toFixed(2)} times one among 1,000`)
  })

  t.test(`20 made-up keys to a right one, in ${engine}`, { skip }, async (t) => {
    const { right, wrong, served, hits, refused, storeLookups, allowed, heapBytes } = await flood(engine, 200, 20, hour)
    t.match({ served, hits }, { served: right, hits: right }, 'right keys are served, from the cache')
    t.ok(storeLookups <= allowed, `${storeLookups} of ${allowed} look-ups`)
    t.same(Object.keys(refused), ['401', '503'])
    t.ok(storeLookups < wrong, 'some wrong keys never reached the store')
    t.ok(heapBytes < 2 * mebi, `${heapBytes} bytes of heap`)
  })
}
