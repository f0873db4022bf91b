/** Whether a wrong key is refused sooner or later where its beginning is right: Welch's t of the two over many pairs. */
import { randomBytes } from 'node:crypto'
import Fastify, { type FastifyRequest } from 'fastify'
import { Authenticator } from '../../plugins/auth/authenticator.js'
import { joinGateway } from '../../plugins/core/gateway.js'
import { ModelCall } from '../../plugins/core/call/model-call.js'
import { createResolve } from '../../plugins/core/url/resolve.js'
import type { Report } from './processes.js'

const limit = 4.5
const keyPrefix = 'sk-lgw-'
const scheme = Buffer.from(`Bearer ${keyPrefix}`)
/** What a garbage collection or another process does to a single one is no sign of ours. */
const cropped = 0.95

/** What stands behind the prefix of a key: all but its end, and that. Of a shorter end some guesses would come twice, and be known. */
const startBytes = 18
const endBytes = 6

function randomText (bytes: number): Buffer {
  return Buffer.from(randomBytes(bytes).toString('base64url'))
}

export async function timing ({ pairs }: { readonly pairs: number }): Promise<Report> {
  const rightStart = randomText(startBytes)
  const right = `${keyPrefix}${rightStart.toString()}${randomText(endBytes).toString()}`
  const authenticator = new Authenticator(
    { groups: { all: { protocols: ['chat_completions'] } }, keys: [{ id: 'a', group: 'all', secret: right }] }, joinGateway(Fastify())
  )
  const resolved = createResolve('')('POST', '/v1/chat/completions', {})
  if (resolved?.kind !== 'endpoint') throw new Error('no endpoint')
  const call = new ModelCall(resolved)
  const prefixed: number[] = []
  const random: number[] = []
  for (let i = 0; i < pairs * 1.1; i++) {
    // Made in the same way, byte for byte: what went before is in the processor's caches, and would be measured, too.
    const guesses: Array<[times: number[], start: Buffer]> = [[prefixed, Buffer.from(rightStart)], [random, randomText(startBytes)]]
    // By chance: by turns, what comes every so many calls, as the collector does, would meet one of the two more often.
    if (Math.random() < 0.5) guesses.reverse()
    for (const [times, start] of guesses) {
      // In one piece, as a socket brings it: one that is made of several is put together where it is first read, which takes time.
      const header = Buffer.concat([scheme, start, randomText(endBytes)]).toString('latin1')
      const request = { raw: { rawHeaders: ['authorization', header] }, headers: {} } as FastifyRequest
      const startedAt = process.hrtime.bigint()
      authenticator.check(call, request)
      const took = Number(process.hrtime.bigint() - startedAt)
      // The first ones are told apart by the compiler.
      if (i >= pairs * 0.1) times.push(took)
    }
  }
  const bound = [...prefixed, ...random].sort((a, b) => a - b)[Math.floor(2 * pairs * cropped)] ?? Infinity
  const t = welch(prefixed.filter((ns) => ns <= bound), random.filter((ns) => ns <= bound))
  const slow = Math.abs(t) < limit ? [] : [`t is ${t.toFixed(2)}`]
  return { violations: [], slow, pairs, t: Number(t.toFixed(3)), meanNs: [mean(prefixed), mean(random)].map(Math.round) }
}

function mean (values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

function welch (a: readonly number[], b: readonly number[]): number {
  const [meanA, meanB] = [mean(a), mean(b)]
  const variance = (values: readonly number[], center: number): number => values.reduce(
    (sum, value) => sum + (value - center) ** 2, 0
  ) / (values.length - 1)
  return (meanA - meanB) / Math.sqrt(variance(a, meanA) / a.length + variance(b, meanB) / b.length)
}
