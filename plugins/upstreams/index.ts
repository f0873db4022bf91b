import { performance } from 'node:perf_hooks'
import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import { GatewayError } from '../core/errors/gateway-error.js'
import { cutUntaken } from '../core/errors/drain-upload.js'
import { refuse } from '../core/errors/refuse.js'
import { hasOwnUpstream } from '../core/upstream/given-upstream.js'
import { joinGateway, type Gateway } from '../core/gateway.js'
import { gatewayPlugin } from '../core/gateway-plugin.js'
import { modelCallOf, type ModelCall } from '../core/call/model-call.js'
import { checkMethods, checkOptions } from '../core/config/options.js'
import type { Recorder } from '../core/recorder.js'
import { routeOf } from '../core/call/route-kind.js'
import type { Notes } from '../core/upstream/upstream.js'
import { writeLog } from '../core/write-log.js'
import { Bindings } from './bindings.js'
import { poolDestination, upstreamDestination } from './destinations.js'
import { expectCounts } from './expected.js'
import { followHealth } from './gauges.js'
import { healthRegistry } from './health.js'
import { modelsAnswer } from './model-list.js'
import type { UpstreamsOptions } from './options.js'
import { plainResult } from './plain-result.js'
import { poolDefaults, poolOf, readPools } from './pool.js'
import { readUpstreams } from './read-upstream.js'
import { RetryBudget } from './retry-budget.js'
import { Router } from './router.js'
import { statusOf } from './status.js'
import type { Surroundings } from './surroundings.js'
import { upstreamWarnings } from './warnings.js'

export type { PoolOptions, UpstreamOptions, UpstreamsOptions } from './options.js'

async function registerUpstreams (app: FastifyInstance, options: UpstreamsOptions): Promise<void> {
  checkOptions('upstreams', options, { 'an object': ['upstreams', 'pools', 'health', 'notes'] })
  checkMethods('upstreams.notes', options.notes, ['read', 'write'])
  const gateway = joinGateway(app)
  gateway.notes = options.notes ?? null
  const registry = healthRegistry(options.health ?? {})
  const around = surroundingsOf(app, gateway, options.notes ?? null)
  const known = readUpstreams(options.upstreams ?? {})
  if ([...known.values()].some(({ models }) => models.size > 0)) gateway.renamesModels = true
  for (const [name, upstream] of Object.entries(options.upstreams ?? {})) {
    for (const warning of upstreamWarnings(upstream)) app.log.warn(`upstreams.${name}.${warning}`)
  }
  const pools = readPools(options.pools ?? {}, known, registry)
  const destinations = new Map([
    ...[...known.values()].map((upstream) => [upstream.name, upstreamDestination(upstream, registry, around)] as const),
    ...[...pools.values()].map((pool) => [pool.name, poolDestination(pool, around)] as const),
  ])
  const router = new Router(destinations, (first, others) => poolDestination(poolOf(first, others, registry), around))
  // A host that has mounts alone decides by them where the requests of a group go that names no upstream.
  const choosesFor = (llm: ModelCall): boolean => gateway.ownScope !== null || hasOwnUpstream(llm)
  gateway.destinationOf = (llm) => choosesFor(llm) ? router.find(llm) : null
  gateway.upstreamsStatus = () => statusOf(known.values(), pools.values(), registry, performance.now())
  answerWithoutUpstream(app, router, choosesFor)
  gateway.settlement.add('upstreams', (llm) => settle(llm, gateway.recorder, around.bindings))
  followHealth(app, gateway, known, registry)
  app.addHook('onReady', async () => expectCounts(gateway.recorder, known.keys(), pools.values()))
}

function surroundingsOf (app: FastifyInstance, gateway: Gateway, notes: Notes | null): Surroundings {
  return {
    bindings: new Bindings(notes, (err) => writeLog(app.log, 'warn', { err }, 'the state engine cannot tell who made a response')),
    budget: new RetryBudget(),
    attempted: (upstream, result) => gateway.recorder.upstreamAttempted(upstream, result),
    failedOver: (pool, reason) => gateway.recorder.failedOver(pool, reason),
    now: () => performance.now(),
    random: Math.random,
  }
}

/** Answers the list of a group's models where the configuration has it, and refuses a model that no route of the group takes. */
function answerWithoutUpstream (app: FastifyInstance, router: Router, choosesFor: (llm: ModelCall) => boolean): void {
  app.addHook('preHandler', function llmGatewayUpstreams (request, reply, done) {
    const llm = modelCallOf(request)
    if (llm === null || llm.auth.group === null || routeOf(llm, request) === 'host' || !choosesFor(llm)) {
      done()
      return
    }
    const answer = modelsAnswer(llm, router) ?? router.refusal(llm)
    if (answer === null) done()
    else if (answer instanceof GatewayError) refuse(reply, llm.endpoint.family, answer)
    else {
      cutUntaken(reply)
      const caching = reply.getHeader('cache-control') ?? 'no-store'
      reply.headers({ 'x-request-id': llm.id, 'request-id': llm.id, 'cache-control': caching }).send(answer)
    }
  })
}

/** Ends the count of an upstream that was asked without a choice, and remembers which upstream made what is bound to its account. */
function settle (llm: ModelCall, recorder: Recorder, bindings: Bindings): void {
  const { routing, auth } = llm
  if (routing.visited !== null) {
    routing.visited.active -= 1
    recorder.upstreamAttempted(String(routing.upstream), plainResult(llm))
  }
  const isRouted = (auth.group?.routes?.length ?? 0) > 0
  const boundMs = routing.boundMs === 0 && isRouted ? poolDefaults.affinityTtlMs : routing.boundMs
  if (boundMs > 0 && routing.upstream !== null) bindings.keep(llm, routing.upstream, boundMs)
}

/**
 * Which upstream gets a request: by its group, its model, and the health of the members of a pool. Answers what needs no
 * upstream: the models of a group that lists them, and a model that none of its routes takes.
 */
export const upstreams: FastifyPluginAsync<UpstreamsOptions> = gatewayPlugin('upstreams', registerUpstreams)
