/**
 * A gateway in a process of its own, so that its memory can be told from that of its callers and its upstream. Forked with
 * `--expose-gc`: argv[2] is the upstream's address, argv[3] the number of the mount in `hosts`, or `bare` for a proxy that has
 * nothing of this package. Sends its address when it listens, and answers every message with a reading.
 */
import process from 'node:process'
import replyFrom from '@fastify/reply-from'
import Fastify, { type FastifyInstance } from 'fastify'
import { gatewayOf } from '../../plugins/core/gateway.js'
import { listen } from '../helpers/gateway.js'
import { hosts } from './hosts.js'

export interface Reading {
  readonly rss: number
  readonly heapUsed: number
  readonly external: number
  readonly arrayBuffers: number
  /** Sockets and timers that are open now. */
  readonly resources: string[]
  readonly settled: number
  /** Tokens of all settled requests. */
  readonly tokens: number
  /** Requests that were settled without usage, by reason. */
  readonly missing: Record<string, number>
}

const [, , upstreamUrl = '', host = '0'] = process.argv
const totals = { settled: 0, tokens: 0, missing: {} as Record<string, number> }

async function startMetered (): Promise<FastifyInstance> {
  const { app, settled } = await (hosts[Number(host)] ?? hosts[0]).start({ teardown: () => {} }, upstreamUrl)
  // The tests' own watcher keeps every request that nobody took from it.
  gatewayOf(app).settlement.onSettled(async () => {
    const llm = await settled.next()
    totals.settled += 1
    totals.tokens += Object.values(llm.usage.tokens ?? {}).reduce((sum: number, tokens: number) => sum + tokens, 0)
    if (llm.usage.missing !== null) totals.missing[llm.usage.missing] = (totals.missing[llm.usage.missing] ?? 0) + 1
  })
  return app
}

async function startBare (): Promise<FastifyInstance> {
  const app = Fastify()
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => { done(null, body) })
  await app.register(replyFrom, { base: upstreamUrl })
  app.post('/*', (request, reply) => {
    return reply.from(request.url, { body: request.body, contentType: 'application/json' })
  })
  app.addHook('onResponse', (_request, _reply, done) => {
    totals.settled += 1
    done()
  })
  return app
}

const address = await listen(await (host === 'bare' ? startBare() : startMetered()))

process.on('message', (collect) => {
  if (collect === true) globalThis.gc?.()
  const { rss, heapUsed, external, arrayBuffers } = process.memoryUsage()
  process.send?.({ rss, heapUsed, external, arrayBuffers, resources: process.getActiveResourcesInfo(), ...totals })
})
process.on('disconnect', () => process.exit())
process.send?.({ address })
