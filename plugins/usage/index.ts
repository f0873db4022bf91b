/**
 * Gives each metered request what opens a tap on its reply; whoever moves the bytes drives it. On a mount of the host that nobody
 * adapted, this plugin does.
 */
import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { refuse } from '../core/errors/refuse.js'
import { joinGateway } from '../core/gateway.js'
import { identifyFirst } from '../core/identify.js'
import { modelCallOf } from '../core/model-call.js'
import type { Upstream } from '../core/upstream.js'
import { routeOf } from '../core/route-kind.js'
import { checkHiding } from '../core/usage-hiding.js'
import { askFor } from './ask.js'
import { tapOpener } from './open-tap.js'
import { readOptions, type UsageOptions } from './options.js'
import { acceptReadable } from './readable-codings.js'
import { withBody } from './take-body.js'
import { watch } from './watch.js'

export type { UsageOptions } from './options.js'

async function registerUsage (app: FastifyInstance, options: UsageOptions): Promise<void> {
  const mayAsk = readOptions(options)
  const gateway = joinGateway(app)
  const openAsIs = tapOpener(gateway)
  const openAsked = tapOpener(gateway, { takeOut: true })
  const openReplay = tapOpener(gateway, { counts: false })

  identifyFirst(app, gateway)

  // Before its body is read.
  app.addHook('preParsing', function llmGatewayUsage (request, reply, _payload, done) {
    const llm = modelCallOf(request)
    const hidden = llm === null ? null : checkHiding(llm, request.headers)
    if (hidden === null || llm === null) done()
    else refuse(request, reply, llm.endpoint.family, hidden)
  })

  app.addHook('preHandler', function llmGatewayUsage (request, reply, done) {
    const llm = modelCallOf(request)
    if (llm === null || llm.endpoint.usage === null) {
      if (llm !== null && llm.endpoint.replays !== null) llm.openTap = openReplay(llm, llm.endpoint.replays)
      done()
      return
    }
    const rules = llm.endpoint.usage
    llm.openTap = openAsIs(llm, rules)
    acceptReadable(request.raw.headers)
    if (rules.request === null || !mayAskAll(gateway.destinationOf(llm)?.upstreams, mayAsk)) {
      done()
      return
    }
    const watchFor = (isAsked: boolean): void => {
      if (isAsked) llm.openTap = openAsked(llm, rules)
    }
    withBody(request, reply, llm, () => {
      const asked = askFor(llm, request.raw.headers, rules)
      return asked instanceof Promise ? asked.then(watchFor) : watchFor(asked)
    }, done)
  })

  app.addHook('onSend', function llmGatewayUsage (request, reply, payload, done) {
    const llm = modelCallOf(request)
    if (llm === null || llm.openTap === null || llm.upstreamReply.tapped || !(payload instanceof Readable)) done()
    else done(null, watch(gateway, request, reply, llm, llm.openTap, payload))
  })

  // Sent on, and left before a reply came: it was paid for, and nobody knows how much. A host's mount does not tell that it sent it.
  gateway.settlement.add('usage', (llm, request) => {
    const unseen = llm.openTap !== null && !llm.upstreamReply.tapped && llm.usage.missing === null
    if (!unseen || llm.abortedBy === null || llm.endpoint.metered !== 'yes') return
    if (llm.times.sentAt > 0 || routeOf(llm, request) === 'host') llm.usage.missing = 'client_abort'
  })
}

/** Which one of a pool gets the request is not known yet. */
function mayAskAll (upstreams: readonly Upstream[] | undefined, mayAsk: (upstream: string | null) => boolean): boolean {
  return upstreams === undefined ? mayAsk(null) : upstreams.every(({ name }) => mayAsk(name))
}

/** Every token of every reply, counted once, while its bytes pass (docs/metrics.md). */
export const usage = fp(registerUsage, { fastify: '5.x', name: 'llm-gateway-usage' })
