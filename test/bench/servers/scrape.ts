/** A gateway whose metrics have grown to a given number of series, and what reading them holds the event loop for. */
import { performance } from 'node:perf_hooks'
import fastify from 'fastify'
import { Registry } from 'prom-client'
import { gatewayOf } from '../../../plugins/core/gateway.js'
import llmGateway from '../../../plugins/index.js'
import { createResolve } from '../../../plugins/core/url/resolve.js'
import { ModelCall } from '../../../plugins/core/call/model-call.js'
import type { Group } from '../../../plugins/core/types.js'
import { median } from '../stats.js'
import { total } from '../verify.js'
import { gatewayOptions } from './gateway-options.js'
import { portOf, serve, settings } from './serve.js'

const wanted = settings.size > 0 ? settings.size : 10_000
const prom = new Registry()
const own = fastify()
const projected = fastify()
await own.register(llmGateway, { ...gatewayOptions(), metrics: { maxModels: 1_000, maxCells: 100_000 } })
await projected.register(llmGateway, { ...gatewayOptions(), metrics: { registry: prom, maxModels: 1_000, maxCells: 100_000 } })
await own.listen({ port: 0, host: '127.0.0.1' })
await projected.ready()

const resolved = createResolve('')('POST', '/v1/chat/completions', {})
const protocols: ReadonlySet<string> = new Set(['chat_completions'])

function request (model: string, group: string): ModelCall {
  if (resolved?.kind !== 'endpoint') throw new Error('no endpoint')
  const llm = new ModelCall(resolved)
  const known: Group = { id: group, protocols, thirdParty: true, upstream: 'main', models: null, limits: {}, onStoreFailure: 'closed' }
  Object.assign(llm, { model, status: 200, outcome: 'ok' })
  llm.auth.group = known
  llm.routing.upstream = 'main'
  llm.upstreamReply.status = 200
  llm.usage.tokens = {
    input: 10, cache_read: 5, cache_write_5m: 0, cache_write_1h: 0, cache_write: 0, tool_input: 0, output: 7, reasoning: 3,
  }
  const now = performance.now()
  Object.assign(llm.times, {
    bodyStartedAt: now, bodyAt: now, sentAt: now, headersAt: now + 5, firstChunkAt: now + 6, lastChunkAt: now + 9, endedAt: now + 9,
  })
  return llm
}

async function text (): Promise<string> {
  return (await own.inject('/metrics')).body
}

const groups = 4
for (let model = 0; total(await text(), 'llm_gateway_series') < wanted; model++) {
  for (let at = 0; at < 5 * groups; at++) {
    for (const app of [own, projected]) {
      const llm = request(`model-${model + Math.floor(at / groups)}`, `group-${at % groups}`)
      gatewayOf(app).recorder.started(llm)
      gatewayOf(app).recorder.settled(llm)
    }
  }
  model += 4
}

/** Milliseconds that the event loop was busy while `read` ran. */
async function busyMs (read: () => Promise<string>): Promise<number> {
  const before = performance.eventLoopUtilization()
  await read()
  const { active } = performance.eventLoopUtilization(before)
  await new Promise(resolve => setTimeout(resolve, 20))
  return active
}

const prometheus = (): Promise<string> => prom.metrics()

/** Runs by turns, our own text twice, the two in turned order each time; the first few are for the compiler. */
async function byTurns (): Promise<{ ownMs: number, againMs: number, promMs: number }> {
  const found: Array<[own: number, prom: number, again: number]> = []
  for (let run = 0; run < 30; run++) {
    const [first, prom, last] = [await busyMs(text), await busyMs(prometheus), await busyMs(text)]
    found.push(run % 2 === 0 ? [first, prom, last] : [last, prom, first])
  }
  const settled = found.slice(6)
  return {
    ownMs: median(settled.map(([own]) => own)),
    promMs: median(settled.map(([, prom]) => prom)),
    againMs: median(settled.map(([, , again]) => again)),
  }
}

serve(portOf(own.server.address()), {
  measure: async () => ({
    series: total(await text(), 'llm_gateway_series'),
    ...await byTurns(),
    bytes: Buffer.byteLength(await text()),
  }),
})
