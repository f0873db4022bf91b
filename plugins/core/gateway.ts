/**
 * Where the plugins meet: one `ModelCall` per model request (`modelCallOf`, null on every other request of the host) and one
 * `Gateway` per app (`gatewayOf`). Plugins never import each other; they read and write these two. Hosts have a view of
 * each (`host-view.ts`).
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
import { ignoreOffers } from './door/offered-upgrade.js'
import { silentRecorder, type MetricFamily, type Recorder } from './recorder.js'
import { Settlement, type Settler } from './call/settlement.js'
import { gatewayView, requestView } from './host/host-view.js'
import { callPlace, type ModelCall } from './call/model-call.js'
import type { Key, KeyChange } from './types.js'
import { answerUntaken } from './door/untaken-upgrade.js'
import type { Destination } from './upstream/upstream.js'
import { tickForm } from './tick-form.js'
import { nothingKnown, type UpstreamsStatus } from './upstream/upstream-status.js'

export interface Gateway {
  recorder: Recorder
  /** Another app has its place: what its gauges tell is of the past. Set by the process that reloads. */
  isReplaced: boolean
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
  app.decorate('llm', gatewayView(gateway))
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
    isReplaced: false,
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
