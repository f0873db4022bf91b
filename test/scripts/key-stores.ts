/**
 * The long runs of `test/auth/store-load.test.ts`, on every engine that shares keys:
 *
 *     node --import=tsx test/scripts/key-stores.ts [keys, default 1000000] [rounds of 21 requests, default 20000]
 */
import { argv, stdout } from 'node:process'
import { flood, growKeys } from '../auth/store-load.js'

const [, , keys = '1000000', rounds = '20000'] = argv

for (const engine of ['lmdb', 'redis'] as const) {
  stdout.write(`${engine}\n`)
  const [few, many] = await growKeys(engine, [1_000, Number(keys)], 10_000, 50_000)
  stdout.write(`  ${JSON.stringify(few)}\n  ${JSON.stringify(many)}\n`)
  stdout.write(`  a look-up among ${keys} keys takes ${(Number(many?.findUs) / Number(few?.findUs)).toFixed(2)} times one among 1,000\n`)
  stdout.write(`  20 made-up keys to a right one: ${JSON.stringify(await flood(engine, Number(rounds), 500))}\n`)
}
