/**
 * Where the plugins meet: one `ModelCall` per model request (`modelCallOf`, null on every other request of the host) and one
 * `Gateway` per app (`gatewayOf`). Plugins never import each other; they read and write these two. Hosts have a view of
 * each (`host/host-view.ts`).
 */
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import type { BudgetsStatus, ConfiguredParties } from './money/budget-status.js'
import type { BodyMemory } from './body/body-memory.js'
import type { Pace } from './body/collect-body.js'
import type { RefusedUrlListener } from './errors/refuse.js'
import type { Pricing } from './money/pricing.js'
import { OptionError } from './config/options.js'
import { ModelMounts } from './door/model-mounts.js'
import { mountPrefix } from './url/mount-prefix.js'
import { createResolve, type Resolve } from './url/resolve.js'
import { continueOverHttp2 } from './door/early-continue.js'
import { ignoreOffers } from './door/offered-upgrade.js'
import { silentRecorder, type MetricFamily, type Recorder } from './recorder.js'
import { CallSettlement } from './call/settlement.js'
import { gatewayView, requestView } from './host/host-view.js'
import type { ReplyUsage } from './call/call-parts.js'
import { kCall, type ModelCall } from './call/model-call.js'
import type { Key, KeyChange } from './types.js'
import { answerUntaken } from './door/untaken-upgrade.js'
import type { Destination, Notes } from './upstream/upstream.js'
import { queuedTick } from './queued-tick.js'
import { nothingKnown, type UpstreamsStatus } from './upstream/upstream-status.js'

export interface Gateway {
  recorder: Recorder
  /** Another app has replaced it, so its gauges are outdated. Set by the process that reloads. */
  isReplaced: boolean
  /** The same object in apps that replace one another. Set by the process that reloads. */
  shared: object
  /** What the recorder has counted; empty without the metrics plugin. */
  metrics: readonly MetricFamily[]
  /** What requests will cost. Set by the costs plugin; null where there are no prices. */
  pricing: Pricing | null
  /** Where a request goes, an upstream or a pool; null where the host's mount decides. Set by the upstreams plugin. */
  destinationOf: (llm: ModelCall) => Destination | null
  /** State of the upstreams. Set by the upstreams plugin. */
  upstreamsStatus: () => UpstreamsStatus
  /** The same as other worker processes see it. Set by a worker process. */
  otherUpstreams: () => Promise<readonly UpstreamsStatus[]>
  /** Path below which the model endpoints stand, empty for none. */
  prefix: string
  /** How URLs are read, below that prefix. */
  resolve: Resolve
  /** The same for what a mount sends, ignoring case, as some providers do. */
  resolveLoosely: Resolve
  /** Hides a path from the router that it would repeat to the caller in an error. Set by the paths plugin. */
  setAside: (raw: IncomingMessage) => void
  /** The scope that has only the routes of this package; null if there are none. Set by the forward plugin. */
  ownScope: FastifyInstance | null
  /** Which routes of the host serve model endpoints. */
  readonly mounts: ModelMounts
  /** What happens to unknown paths below a version: on a host's mount of model endpoints, and where there is no route. */
  readonly unknown: { mounts: 'refuse' | 'leave', nowhere: 'refuse' | 'leave' }
  /** The pace at which large bodies are read; null for as they come. Set by the validation plugin. */
  bodyPace: Pace | null
  /** The memory that large bodies share; null for no bound. Set by the overload plugin. */
  bodyMemory: BodyMemory | null
  /** Requests need a key. Set by the auth plugin. */
  guarded: boolean
  /** Some group has an upstream of its own. Set by the auth plugin. */
  namesUpstreams: boolean
  /** Some upstream has another name for a model. Set by the upstreams plugin. */
  renamesModels: boolean
  /** Groups and keys of the configuration. Set by the auth plugin. */
  parties: ConfiguredParties
  /** Lists the keys of the store; null if that is not possible. Set by the auth plugin. */
  issuedKeys: (() => AsyncIterable<Key>) | null
  /** What processes remember for one another; null for nothing. Set by the upstreams plugin. */
  notes: Notes | null
  /** Gives a request the usage that its reply repeats, if nobody was charged for it yet. Never rejects. Set by the limits plugin. */
  usageTold: (llm: ModelCall, told: ReplyUsage) => Promise<void> | null
  /** State of all budgets. Rejects while the store cannot answer. Set by the limits plugin. */
  budgetsStatus: () => Promise<BudgetsStatus>
  /** Transports to upstreams. Closed before the plugins that record what replies report. */
  readonly transports: Set<{ readonly destroy: () => Promise<void> }>
  /** The steps that end a model request. Plugins add theirs. */
  readonly settlement: CallSettlement
  /** Logs a refused path. Set by the log plugin. */
  urlRefused: RefusedUrlListener
  /** Forgets cached keys. Set by the auth plugin. */
  invalidateKeys: (change: KeyChange) => void
  /** See `queuedTick`: it only has to exist. */
  readonly queuedTick: Promise<object>
}

const kGateway = Symbol('fastify-llm-gateway.gateway')

/** True where a plugin of this package was registered in this scope or around it. */
export function hasGateway (app: FastifyInstance): boolean {
  return app.hasDecorator(kGateway)
}

/** Throws `FST_ERR_DEC_UNDECLARED` where no plugin of this package was registered. */
export function gatewayOf (app: FastifyInstance): Gateway {
  return app.getDecorator<Gateway>(kGateway)
}

/**
 * Returns the gateway of this app, and makes it, `app.llm` and `request.llm` if there is none yet. Every plugin calls it first. Throws
 * `FST_ERR_DEC_ALREADY_PRESENT` if the host has an `llm` of its own, and `LLM_GATEWAY_OPTION` for another prefix than that of the gateway
 * around this scope. `prefix`: the path above the model endpoints, if the plugin has that option.
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
  continueOverHttp2(app)
  app.decorate('llm', gatewayView(gateway))
  app.decorate(kGateway, gateway)
  app.decorateRequest(kCall, null)
  app.decorateRequest('llm', { getter () { return requestView(this) } })
  return gateway
}

function doNothing (): void {}

function newGateway (): Omit<Gateway, 'prefix' | 'resolve' | 'resolveLoosely' | 'mounts'> {
  return {
    recorder: silentRecorder,
    isReplaced: false,
    shared: {},
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
    renamesModels: false,
    parties: { groups: [], keys: [] },
    issuedKeys: null,
    notes: null,
    usageTold: () => null,
    budgetsStatus: async () => ({ budgets: [], more: 0, isCut: false }),
    transports: new Set<never>(),
    settlement: new CallSettlement(),
    urlRefused: doNothing,
    invalidateKeys: doNothing,
    queuedTick,
  }
}

function isCaseSensitive ({ initialConfig }: FastifyInstance): boolean {
  return initialConfig.routerOptions?.caseSensitive !== false && initialConfig.caseSensitive !== false
}

/**
 * To be checked before a model request is sent: false if keys are needed and this request's was not checked, because its
 * route is outside of the scope of the auth plugin.
 */
export function isLetIn (gateway: Gateway, llm: ModelCall): boolean {
  return llm.auth.passed || !gateway.guarded
}
