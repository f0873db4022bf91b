/**
 * Gives each metered request a function that opens a tap on its reply. Whoever moves the bytes feeds the tap: the forward plugin, or this
 * one on a mount without `proxyOptions()`.
 */
import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import { refuse } from '../core/errors/refuse.js'
import { joinGateway, type Gateway } from '../core/gateway.js'
import { gatewayPlugin } from '../core/gateway-plugin.js'
import { identifyFirst } from '../core/call/identify.js'
import { succeeded } from '../core/call/measures.js'
import { modelCallOf, type ModelCall } from '../core/call/model-call.js'
import type { UsageMissing } from '../core/types.js'
import type { Upstream } from '../core/upstream/upstream.js'
import { routeOf } from '../core/call/route-kind.js'
import { checkHiding } from './hiding.js'
import { askFor } from './ask.js'
import { tapOpener } from './open-tap.js'
import { readOptions, type MayAsk, type UsageOptions } from './options.js'
import { acceptReadable } from './content-codings.js'
import { streamOf } from './reply-stream.js'
import { withBody } from './take-body.js'
import { tapWhole, watch } from './watch.js'

export type { UsageOptions } from './options.js'

async function registerUsage (app: FastifyInstance, options: UsageOptions): Promise<void> {
  const mayAsk = readOptions(options)
  const gateway = joinGateway(app)
  identifyFirst(app, gateway)
  refuseHiding(app)
  openTaps(app, gateway, mayAsk)
  tapHostReplies(app, gateway)
  gateway.settlement.add('usage', (llm, request) => {
    const isUnseen = llm.openTap !== null && !llm.upstreamReply.tapped && llm.usage.missing === null
    if (isUnseen && llm.endpoint.metered === 'yes') llm.usage.missing = unseenFor(llm, routeOf(llm, request) === 'host')
  })
}

/** Refuses requests whose reply could hide its usage, before their body is read. */
function refuseHiding (app: FastifyInstance): void {
  app.addHook('preParsing', function llmGatewayUsage (request, reply, _payload, done) {
    const llm = modelCallOf(request)
    const hidden = llm === null ? null : checkHiding(llm, request.headers)
    if (hidden === null || llm === null) done()
    else refuse(reply, llm.endpoint.family, hidden)
  })
}

/** Gives each request what opens the tap on its reply, and asks for usage where its caller did not. */
function openTaps (app: FastifyInstance, gateway: Gateway, mayAsk: MayAsk): void {
  const openAsIs = tapOpener(gateway)
  const openAsked = tapOpener(gateway, { takeOut: true })
  const openReplay = tapOpener(gateway, { repeats: true })

  app.addHook('preHandler', function llmGatewayUsage (request, reply, done) {
    const llm = modelCallOf(request)
    const rules = llm === null ? null : llm.endpoint.usage ?? llm.endpoint.replays
    if (llm === null || rules === null) {
      done()
      return
    }
    llm.openTap = llm.endpoint.usage === null ? openReplay(llm, rules) : openAsIs(llm, rules)
    acceptReadable(request.raw.headers)
    if (rules.request === null || !mayAskAll(gateway.destinationOf(llm)?.upstreams, mayAsk)) {
      done()
      return
    }
    const watchFor = (isAsked: boolean): void => {
      if (isAsked) llm.openTap = openAsked(llm, rules)
    }
    withBody(reply, llm, () => {
      const asked = askFor(llm, request.raw.headers, rules)
      return asked instanceof Promise ? asked.then(watchFor) : watchFor(asked)
    }, done)
  })
}

/** Watches replies that our transport did not carry: those of mounts without `proxyOptions()`, and of the host's own handlers. */
function tapHostReplies (app: FastifyInstance, gateway: Gateway): void {
  app.addHook('onSend', function llmGatewayUsage (request, reply, payload, done) {
    const llm = modelCallOf(request)
    if (llm === null || llm.upstreamReply.tapped) done()
    else if (typeof payload === 'string' || Buffer.isBuffer(payload)) done(null, tapWhole(reply, llm, payload))
    else {
      const body = streamOf(payload, reply)
      done(null, body === null ? payload : watch(gateway, reply, llm, body))
    }
  })
}

/**
 * Why no tap saw the usage of a request that has to be paid for: its caller left before a reply came, or a host answered past the
 * framework. Null if there is nothing to pay. Whether a host's mount sent the request is not known.
 */
function unseenFor (llm: ModelCall, isHosts: boolean): UsageMissing | null {
  if (llm.abortedBy !== null) return isHosts || llm.times.sentAt > 0 ? 'client_abort' : null
  return isHosts && succeeded(llm) ? 'no_usage' : null
}

/** Whether all upstreams of the destination may be asked: which one of a pool gets the request is not known yet. */
function mayAskAll (upstreams: readonly Upstream[] | undefined, mayAsk: MayAsk): boolean {
  return upstreams?.every(({ name }) => mayAsk(name)) ?? mayAsk(null)
}

/** Every token of every reply, counted once, while its bytes pass (docs/metrics.md). */
export const usage: FastifyPluginAsync<UsageOptions> = gatewayPlugin('usage', registerUsage)
