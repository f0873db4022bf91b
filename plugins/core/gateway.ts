/**
 * Where the plugins meet: one `ModelCall` per model request (`modelCallOf`, null on every other request of the host) and one
 * `Gateway` per app (`gatewayOf`). Plugins never import each other; they read and write these two. Hosts have a view of
 * each: `request.llm` and `app.llm`.
 */
import type { IncomingMessage } from 'node:http'
import { performance } from 'node:perf_hooks'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { BudgetsStatus, ConfiguredParties } from './budget-status.js'
import type { BodyMemory } from './body-memory.js'
import type { Pace } from './collect-body.js'
import type { RefusedUrlListener } from './errors/refuse.js'
import type { Pricing } from './pricing.js'
import { OptionError } from './options.js'
import { outcomeOf } from './measures.js'
import { ModelMounts } from './model-mounts.js'
import { mountPrefix } from './url/mount-prefix.js'
import { createResolve, type Resolve } from './url/resolve.js'
import { ignoreOffers } from './offered-upgrade.js'
import { endWithConnection } from './pipelined-reply.js'
import { silentRecorder, type MetricFamily, type Recorder } from './recorder.js'
import { Settlement, type Settler } from './settlement.js'
import { callPlace, modelCallOf, setModelCall, type ModelCall } from './model-call.js'
import { modelRequestOf } from './model-request-view.js'
import type { ModelRequest } from './model-request.js'
import type { Key, KeyChange } from './types.js'
import { answerUntaken } from './untaken-upgrade.js'
import type { Destination } from './upstream.js'
import { tickForm } from './tick-form.js'
import { nothingKnown, type UpstreamsStatus } from './upstream-status.js'

export interface Gateway {
  recorder: Recorder
  /** What the recorder has counted; empty without the metrics plugin. */
  metrics: readonly MetricFamily[]
  /** What requests will cost. Set by the costs plugin; null where there are no prices. */
  pricing: Pricing | null
  /** Where a request goes, an upstream or a pool; null where the host's mount decides. Set by the upstreams plugin. */
  destinationOf: (llm: ModelCall) => Destination | null
  /** How the upstreams do. Set by the upstreams plugin. */
  upstreamsStatus: () => UpstreamsStatus
  /** How they do for other processes of the same gateway. Set by the process that is one of several. */
  otherUpstreams: () => Promise<readonly UpstreamsStatus[]>
  /** Path below which the model endpoints stand, empty for none. */
  prefix: string
  /** How URLs are read, below that prefix. */
  resolve: Resolve
  /** The same for what a mount sends: to a provider case may not count. */
  resolveLoosely: Resolve
  /** Keeps a path that the router would repeat to its caller away from it. Set by the paths plugin. */
  setAside: (raw: IncomingMessage) => void
  /** Where the routes of this package stand and no other; null where there are none. Set by the forward plugin. */
  ownScope: FastifyInstance | null
  /** Which routes of the host serve model endpoints. */
  readonly mounts: ModelMounts
  /** What happens to paths below a version that nobody knows: below a host's mount of model endpoints, and where there is no route. */
  readonly unknown: { mounts: 'refuse' | 'leave', nowhere: 'refuse' | 'leave' }
  /** At which large bodies are read; null for as they come. Set by the validation plugin. */
  bodyPace: Pace | null
  /** What large bodies may take together; null for any amount. Set by the overload plugin. */
  bodyMemory: BodyMemory | null
  /** Somebody asks for keys. Set by the auth plugin. */
  guarded: boolean
  /** Some group has an upstream of its own. Set by the auth plugin. */
  namesUpstreams: boolean
  /** Who is known beforehand. Set by the auth plugin. */
  parties: ConfiguredParties
  /** Keys of a store that can list them; null for none. Set by the auth plugin. */
  issuedKeys: (() => AsyncIterable<Key>) | null
  /** How the budgets of both stand. Rejects while the store cannot answer. Set by the limits plugin. */
  budgetsStatus: () => Promise<BudgetsStatus>
  /** What sends requests upstream. Closed before the plugins that write down what a reply told. */
  readonly transports: Set<{ readonly destroy: () => Promise<void> }>
  /** What ends a model request. Each plugin that has a part in it adds its step. */
  readonly settlement: Settlement
  /** Adds a step that follows all others, such as a host's. */
  readonly onSettled: (settle: Settler) => void
  /** Set by the log plugin. */
  urlRefused: RefusedUrlListener
  /** Forgets cached keys. Set by the auth plugin. */
  invalidateKeys: (change: KeyChange) => void
  /** Read by nobody: it is there. */
  readonly tickForm: object
}

/** Hears of a model request once, at its end. `request` is the host's request that stood for it. */
export type SettledListener = (settled: ModelRequest, request: FastifyRequest) => unknown

/** What a host may ask of the gateway: `app.llm`. */
export interface ModelGateway {
  /** Forgets cached keys before their time: one by `digest` or `id`, those of a `group`, or every key (`{ group: '*' }`). */
  invalidateKeys: (change: KeyChange) => void
  /**
   * Has `listener` called once for each model request, after its last byte, error, abort or timeout, when its usage, cost
   * and outcome are known. What it throws, or a promise of its that fails, is logged and harms nothing; nobody waits for it.
   *
   *     app.llm.onSettled(({ key, usage }) => bill(key?.id, usage))
   */
  onSettled: (listener: SettledListener) => void
}

const kGateway = Symbol('fastify-llm-gateway.gateway')

declare module 'fastify' {
  interface FastifyRequest {
    /** What the gateway knows of a model request, null for any other. */
    readonly llm: ModelRequest | null
  }
  interface FastifyInstance {
    readonly llm: ModelGateway
  }
  interface FastifyContextConfig {
    /** `own`: a route of this package. `proxy`: a host's mount that spreads `proxyOptions()`. */
    llm?: 'own' | 'proxy'
    /** A mount that spreads `proxyOptions({ unknown: 'forward' })`. */
    llmUnknown?: 'forward'
  }
}

/** True where a plugin of this package was registered in this scope or around it. */
export function hasGateway (app: FastifyInstance): boolean {
  return app.hasDecorator(kGateway)
}

/** Throws `FST_ERR_DEC_UNDECLARED` where no plugin of this package was registered. */
export function gatewayOf (app: FastifyInstance): Gateway {
  return app.getDecorator<Gateway>(kGateway)
}

/**
 * Makes `request.llm` and `app.llm` exist; fails where the host has its own. Every plugin calls it first. `prefix`: the path
 * below which the model endpoints stand, for a plugin that was told one.
 */
export function joinGateway (app: FastifyInstance, prefix = ''): Gateway {
  const known = hasGateway(app) ? gatewayOf(app) : null
  if (known !== null && prefix === '') return known
  const place = mountPrefix(app.prefix, prefix)
  if (known !== null && known.guarded && place !== known.prefix && !Object.hasOwn(app, kGateway)) {
    throw new OptionError('prefix', `is ${known.prefix || 'none'} for the gateway around this scope, and cannot be ${place} here`)
  }
  const where = { prefix: place, resolve: createResolve(place, isCaseSensitive(app)), resolveLoosely: createResolve(place, false) }
  if (known !== null) return Object.assign(known, where)
  const gateway: Gateway = Object.assign(where, newGateway(), { mounts: new ModelMounts(app, where) })
  gateway.settlement.add('metrics', (llm) => gateway.recorder.settled(llm))
  ignoreOffers(app, gateway)
  answerUntaken(app, gateway)
  app.decorate('llm', viewOf(gateway))
  app.decorate(kGateway, gateway)
  app.decorateRequest(callPlace, null)
  app.decorateRequest('llm', { getter () { return requestView(this) } })
  return gateway
}

function doNothing (): void {}

function newGateway (): Omit<Gateway, 'prefix' | 'resolve' | 'resolveLoosely' | 'mounts'> {
  const settlement = new Settlement()
  return {
    recorder: silentRecorder,
    metrics: [],
    setAside: doNothing,
    pricing: null,
    destinationOf: () => null,
    upstreamsStatus: () => nothingKnown,
    otherUpstreams: async () => [],
    bodyPace: null,
    bodyMemory: null,
    ownScope: null,
    unknown: { mounts: 'leave', nowhere: 'leave' },
    guarded: false,
    namesUpstreams: false,
    parties: { groups: [], keys: [] },
    issuedKeys: null,
    budgetsStatus: async () => ({ budgets: [], more: 0, isCut: false }),
    transports: new Set<never>(),
    settlement,
    onSettled: settlement.onSettled,
    urlRefused: doNothing,
    invalidateKeys: doNothing,
    tickForm: tickForm(),
  }
}

function viewOf (gateway: Gateway): ModelGateway {
  return {
    invalidateKeys: (change) => gateway.invalidateKeys(change),
    onSettled (listener) {
      if (typeof listener !== 'function') throw new OptionError('onSettled', 'must be a function')
      gateway.onSettled((llm, request) => listener(modelRequestOf(llm), request))
    },
  }
}

function requestView (request: FastifyRequest): ModelRequest | null {
  const call = modelCallOf(request)
  return call === null ? null : modelRequestOf(call)
}

function isCaseSensitive ({ initialConfig }: FastifyInstance): boolean {
  return initialConfig.routerOptions?.caseSensitive !== false && initialConfig.caseSensitive !== false
}

/**
 * Asked by whoever is about to send a model request: false where somebody asks for keys, and has not asked for this one's. Its
 * route is outside of the guard's scope then.
 */
export function isLetIn (gateway: Gateway, llm: ModelCall): boolean {
  return llm.auth.passed || !gateway.guarded
}

/** Starts the life of a model request: counts it as active and settles it when the reply's socket is done with it. */
export function beginRequest (gateway: Gateway, request: FastifyRequest, reply: FastifyReply, llm: ModelCall): void {
  const begun = llm.request !== null
  setModelCall(request, llm)
  llm.carryOn(request)
  if (begun) return
  gateway.recorder.started(llm)
  // Not `writableFinished`: it stays false under `inject`. Over HTTP/2 a reply that broke off finishes too.
  let finished = false
  reply.raw.on('finish', () => { finished = reply.raw.writableEnded })
  function closed (): void {
    llm.times.endedAt = performance.now()
    // What is finished was sent, whatever a layer of the host's tells in place of `headersSent` (`@fastify/express`).
    if (finished || reply.raw.headersSent) llm.status = reply.raw.statusCode
    if (!finished) llm.abortedBy ??= 'client'
    llm.exchange?.callerGone()
    if (llm.request !== null) releaseHold(gateway, llm.request, llm)
  }
  endWithConnection(request.raw, reply.raw)
  // A caller that left while an earlier hook was waiting: its socket will not tell again. Over HTTP/2 there is none any more.
  if (reply.raw.destroyed || reply.raw.socket === undefined) closed()
  else reply.raw.on('close', closed)
}

/** Ends one party's hold; the last one settles the request, once ever. */
export function releaseHold (gateway: Gateway, request: FastifyRequest, llm: ModelCall): void {
  llm.holds -= 1
  if (llm.holds > 0 || llm.settled) return
  llm.settled = true
  llm.outcome ??= outcomeOf(llm, llm.routing.forwardsSecret)
  gateway.settlement.run(llm, request)
  // Nothing of a settled request leads on to all that it had: whole dead requests would outlive the next scavenge.
  llm.openTap = null
  llm.carryOn(null)
}
