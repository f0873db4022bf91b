/**
 * The long runs of `test/usage/memory.test.ts`, for every kind of mount:
 *
 *     node --import=@tapjs/typescript/import test/scripts/usage-memory.ts [megabytes, default 1024] [aborted streams, default 100000]
 */
import { argv, stdout } from 'node:process'
import { abortStreams, readSlowly } from '../usage/memory-load.js'

const [, , megabytes = '1024', streams = '100000'] = argv

for (const [host, name] of ['routes of this package', 'a mount that spreads proxyOptions', 'a mount that nobody adapted'].entries()) {
  stdout.write(`${name}\n`)
  stdout.write(`  ${megabytes} MB, read slowly: ${JSON.stringify(await readSlowly(host, Number(megabytes)))}\n`)
  stdout.write(`  ${streams} streams whose callers leave: ${JSON.stringify(await abortStreams(host, Number(streams), 50))}\n`)
}
