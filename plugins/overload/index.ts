/**
 * Refuses requests before their body is read. Checks that need no key come first, and before auth if `pressure` is registered before it.
 * The check that no key takes the others' share comes after auth, when the key is known.
 */
import { totalmem } from 'node:os'
import type { FastifyInstance, FastifyPluginAsync, FastifyReply } from 'fastify'
import { BodyMemory } from '../core/body/body-memory.js'
import { overloaded } from '../core/errors/overloaded.js'
import { refuse } from '../core/errors/refuse.js'
import { onFurtherServers } from '../core/door/further-servers.js'
import { joinGateway, type Gateway } from '../core/gateway.js'
import { gatewayPlugin } from '../core/gateway-plugin.js'
import { identifyFirst } from '../core/call/identify.js'
import { modelCallOf, type ModelCall } from '../core/call/model-call.js'
import type { ShedReason } from '../core/recorder.js'
import { ActiveRequests, noRequests, type RunningRequests } from './active-requests.js'
import { isExcess, limitConnections } from './connections.js'
import { checkOverloadOptions, type OverloadOptions } from './options.js'
import { Pressure } from './pressure.js'
import { watchProcess } from './watch-process.js'

export type { OverloadOptions } from './options.js'
export { limitConnections } from './connections.js'

/** Gateways whose process is watched already. */
const watched = new WeakSet<Gateway>()

interface Taken {
  readonly held: { bytes: number }
  readonly running: RunningRequests
}

/** What requests have taken, by what their apps share: at a reload, those of the app before go on. */
const taken = new WeakMap<object, Taken>()

function takenIn ({ shared }: Gateway): Taken {
  const known = taken.get(shared) ?? { held: { bytes: 0 }, running: noRequests() }
  taken.set(shared, known)
  return known
}

async function registerPressure (app: FastifyInstance, options: OverloadOptions): Promise<void> {
  checkOverloadOptions(options)
  const { maxLoopDelayMs = 200, maxHeapPercent = 92, maxConnections } = options
  const gateway = joinGateway(app)
  watched.add(gateway)
  const delays = new Pressure(maxLoopDelayMs === 0 ? Infinity : maxLoopDelayMs)
  const watch = watchProcess(delays, maxHeapPercent)
  app.addHook('onClose', async () => watch.end())
  if (maxConnections !== undefined) {
    const watchToo = limitConnections(app.server, maxConnections, () => gateway.recorder.shed('connections'))
    onFurtherServers(app, watchToo)
  }
  identifyFirst(app, gateway)

  app.addHook('onRequest', function llmGatewayPressure (request, reply, done) {
    const llm = modelCallOf(request)
    const isAbove = isExcess(request.raw)
    if (isAbove) reply.header('connection', 'close')
    const reason = llm === null ? null : reasonNow()
    if (llm === null || (reason === null && !isAbove)) done()
    // A connection was counted when it was accepted.
    else shed(gateway, llm, reason, reply)
  })

  function reasonNow (): ShedReason | null {
    if (watch.isHeapFull()) return 'heap'
    return delays.share > 0 && Math.random() < delays.share ? 'loop_delay' : null
  }
}

async function registerOverload (app: FastifyInstance, options: OverloadOptions): Promise<void> {
  checkOverloadOptions(options)
  const gateway = joinGateway(app)
  if (!watched.has(gateway)) await registerPressure(app, options)
  const { maxActive, maxHeldBytes = defaultHeldBytes() } = options
  const { held, running } = takenIn(gateway)
  const memory = new BodyMemory(maxHeldBytes, () => gateway.recorder.shed('body_memory'), held)
  gateway.bodyMemory = memory
  gateway.settlement.onSettled((llm) => memory.leave(llm))
  if (maxActive === undefined) return
  const active = new ActiveRequests(maxActive, running)
  gateway.settlement.onSettled((llm) => active.leave(llm))
  app.addHook('onRequest', function llmGatewayOverload (request, reply, done) {
    const llm = modelCallOf(request)
    const reason = llm === null ? null : active.enter(llm)
    if (llm === null || reason === null) done()
    else shed(gateway, llm, reason, reply)
  })
}

/** `maxHeldBytes` of each of so many processes that share the memory: a quarter of it for all together. */
export function defaultHeldBytes (processes = 1): number {
  return Math.floor(memoryBytes() / 4 / processes)
}

/** Memory of the container if it is limited, otherwise of the machine; 0 means unknown. */
function memoryBytes (): number {
  return Math.min(...[totalmem(), process.constrainedMemory()].filter((bytes) => bytes > 0))
}

function shed (gateway: Gateway, llm: ModelCall, reason: ShedReason | null, reply: FastifyReply): void {
  if (reason !== null) gateway.recorder.shed(reason)
  // A connection above the maximum is closed at once: its upload is not awaited.
  refuse(reply, llm.endpoint.family, overloaded(isExcess(reply.request.raw) ? { connection: 'close' } : {}))
}

/** The checks that need no key: registered before auth, a refusal costs less. */
export const pressure: FastifyPluginAsync<OverloadOptions> = gatewayPlugin('pressure', registerPressure)
/**
 * Refuses model requests while the process has too much to do: 503 with `retry-after`. The host's other routes are not affected.
 * Registered after auth.
 */
export const overload: FastifyPluginAsync<Omit<OverloadOptions, 'maxQueued' | 'queueMs'>> =
  gatewayPlugin('overload', registerOverload, ['auth'])
