/**
 * The long runs of `test/usage/memory.test.ts`, for every kind of mount, and for a bare `reply.from` proxy beside them. Fails
 * where a stream makes the process grow by 32 MB or more, and where aborted streams leave 5 MB of heap, a socket, a timer
 * or an upstream request behind:
 *
 *     node --import=tsx test/scripts/usage-memory.ts [megabytes, default 1024] [aborted streams, default 100000]
 */
import process, { argv, stdout } from 'node:process'
import { abortStreams, readSlowly } from '../usage/memory-load.js'

const [, , megabytes = '1024', streams = '100000'] = argv
const mebi = 1024 * 1024
const warmUpMegabytes = 64

for (const [host, name] of ['routes of this package', 'a mount that spreads proxyOptions', 'a mount that nobody adapted'].entries()) {
  const slow = await readSlowly(host, Number(megabytes), warmUpMegabytes)
  stdout.write(`${name}\n  ${megabytes} MB, read slowly: ${JSON.stringify(slow)}\n`)
  if (slow.grownBytes >= 32 * mebi || slow.heldBytes >= 2 * mebi) process.exitCode = 1
  if (streams === '0') continue
  const left = await abortStreams(host, Number(streams), 50)
  stdout.write(`  ${streams} streams whose callers leave: ${JSON.stringify(left)}\n`)
  if (left.heapBytes >= 5 * mebi || left.upstreamSockets > 0 || left.resources.length > 0) process.exitCode = 1
}
const bare = await readSlowly('bare', Number(megabytes), warmUpMegabytes)
stdout.write(`a bare reply.from proxy\n  ${megabytes} MB, read slowly: ${JSON.stringify(bare)}\n`)
