/**
 * Refuses model requests while the process has too much to do: before their body is read, with 503 in the caller's protocol
 * and a time to come back. The host's other routes go on. Registered after auth, as a key must not take what is left to others.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { overloaded } from '../core/errors/overloaded.js'
import { refuse } from '../core/errors/refuse.js'
import { joinGateway } from '../core/gateway.js'
import { modelCallOf, type ModelCall } from '../core/model-call.js'
import { ActiveRequests } from './active-requests.js'
import { checkOverloadOptions, type OverloadOptions } from './options.js'
import { Pressure } from './pressure.js'

export type { OverloadOptions } from './options.js'

const windowMs = 500
const resolutionMs = 20

async function overload (app: FastifyInstance, options: Omit<OverloadOptions, 'maxQueued' | 'queueMs'>): Promise<void> {
  checkOverloadOptions(options)
  const { maxLoopDelayMs = 200, maxHeapPercent = 92, maxActive, maxConnections } = options
  const gateway = joinGateway(app)
  const pressure = new Pressure(maxLoopDelayMs === 0 ? Infinity : maxLoopDelayMs)
  const active = maxActive === undefined ? null : new ActiveRequests(maxActive)
  if (active !== null) gateway.onSettled((llm) => active.leave(llm))
  let heapIsFull = false

  if (maxConnections !== undefined) {
    app.server.maxConnections = maxConnections
    app.server.on('drop', () => gateway.recorder.shed('connections'))
  }
  app.addHook('onClose', watch())

  app.addHook('onRequest', function llmGatewayOverload (request, reply, done) {
    const llm = modelCallOf(request)
    const reason = llm === null ? null : reasonAgainst(llm)
    if (llm === null || reason === null) {
      done()
      return
    }
    gateway.recorder.shed(reason)
    refuse(request, reply, llm.endpoint.family, overloaded())
  })

  function reasonAgainst (llm: ModelCall): string | null {
    if (heapIsFull) return 'heap'
    if (pressure.share > 0 && Math.random() < pressure.share) return 'loop_delay'
    return active === null ? null : active.enter(llm)
  }

  /** Returns what ends it. */
  function watch (): () => Promise<void> {
    const delays = monitorEventLoopDelay({ resolution: resolutionMs })
    delays.enable()
    const timer = setInterval(() => {
      // Without a value it is NaN, which is not late.
      pressure.note(delays.mean / 1e6 - resolutionMs)
      delays.reset()
      const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics()
      heapIsFull = used > limit * maxHeapPercent / 100
    }, windowMs).unref()
    return async () => {
      clearInterval(timer)
      delays.disable()
    }
  }
}

export default fp(overload, { fastify: '5.x', name: 'llm-gateway-overload', dependencies: ['llm-gateway-auth'] })
export { overload }
