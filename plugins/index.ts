import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import { auth, type AuthOptions } from './auth/index.js'
import { consolePage, type ConsoleOptions } from './console/index.js'
import { costs, type CostsOptions, type PriceOptions } from './costs/index.js'
import { errors } from './errors/index.js'
import { checkPlaces, inBundle } from './core/config/in-bundle.js'
import { checkOptions, given, OptionError } from './core/config/options.js'
import { forward, proxyOptions, type ForwardOptions } from './forward/index.js'
import { refuseSecond } from './core/host/gateway-scope.js'
import { labels, type LabelsOptions } from './labels/index.js'
import { limits, type LimitsOptions } from './limits/index.js'
import { log, type LogOptions } from './log/index.js'
import { metrics, type MetricsOptions } from './metrics/index.js'
import { overload, pressure, type OverloadOptions } from './overload/index.js'
import { createRewriteUrl, paths, type PathsOptions } from './paths/index.js'
import { tracing, type TracingOptions } from './tracing/index.js'
import { groupMistakes, unreached } from './upstreams/check-groups.js'
import { upstreams, type UpstreamsOptions } from './upstreams/index.js'
import { usage, type UsageOptions } from './usage/index.js'
import { validation, type ValidationOptions } from './validation/index.js'

/**
 * The options of all plugins. Name your upstreams and pools to have the compiler check them: `LlmGatewayOptions<'main' | 'other', 'pool'>`.
 */
export interface LlmGatewayOptions<Upstream extends string = string, Pool extends string = string extends Upstream ? string : never>
  extends Pick<AuthOptions<Upstream | Pool>, 'groups' | 'keys' | 'lookup' | 'store'>, Pick<ForwardOptions, 'routes'>,
  UpstreamsOptions<Upstream, Pool> {
  /**
   * Path below which the model endpoints are served, such as `/llm`.
   * @defaultValue none
   */
  prefix?: string
  /**
   * What to do with unknown paths.
   * @defaultValue `{}`
   */
  paths?: Pick<PathsOptions, 'unknown'>
  /**
   * How callers are recognised: key cache, protection against guessed keys, where credentials are read from.
   * @defaultValue `{}`
   */
  auth?: Omit<AuthOptions, 'groups' | 'keys' | 'lookup' | 'store'>
  /**
   * Refuse requests while the process has too much to do.
   * @defaultValue `false`: only waiting for an upstream connection is bounded
   */
  overload?: OverloadOptions | false
  /**
   * Where limits are counted, and where usage records are kept.
   * @defaultValue limits in memory, no usage records
   */
  limits?: LimitsOptions
  /**
   * Size limits and schemas of request bodies.
   * @defaultValue `{}`
   */
  validation?: ValidationOptions
  /**
   * How streamed chats are made to report usage.
   * @defaultValue `{}`
   */
  usage?: UsageOptions
  /**
   * Price lists.
   * @defaultValue none: requests have no cost
   */
  prices?: Omit<CostsOptions, 'header' | 'factors'>
  /**
   * What callers are told about costs.
   * @defaultValue nothing
   */
  costs?: Pick<CostsOptions, 'header'>
  /**
   * Labels that callers give to their requests.
   * @defaultValue none
   */
  labels?: LabelsOptions
  /**
   * Metrics for Prometheus and OpenTelemetry; `false` for none.
   * @defaultValue `{}`
   */
  metrics?: MetricsOptions | false
  /**
   * A page that shows the metrics, at a path or a port of its own.
   * @defaultValue none
   */
  console?: ConsoleOptions
  /**
   * The log line for each model request; `false` for none.
   * @defaultValue `{}`
   */
  log?: LogOptions | false
  /**
   * The OpenTelemetry span for each model call; `false` for none.
   * @defaultValue `{}`
   */
  tracing?: TracingOptions | false
  /**
   * Connections to upstreams, and their timeouts.
   * @defaultValue `{}`
   */
  forward?: Omit<ForwardOptions, 'routes'>
}

async function registerGateway (app: FastifyInstance, options: LlmGatewayOptions): Promise<void> {
  await inBundle(registerParts(app, options), options)
}

async function registerParts (app: FastifyInstance, options: LlmGatewayOptions): Promise<void> {
  checkOptions('llmGateway', options, known)
  refuseSecond(app)
  checkPlaces(options)
  checkOptions('costs', options.costs ?? {}, { 'a boolean': ['header'] })
  const { prefix, upstreams: targets = {}, pools = {}, health, notes, routes = true, groups, keys, lookup, store } = options
  if (options.console !== undefined) await app.register(consolePage, options.console)
  // Before all plugins that start model calls: a request whose path is repaired passes the router again, and must not have started before.
  await app.register(paths, { ...options.paths, ...given({ prefix }) })
  if (options.metrics !== false) await app.register(metrics, options.metrics ?? {})
  await app.register(errors)
  const { maxQueued, queueMs, ...shedding } = options.overload || {}
  // All of it, so that each is told by its name here.
  if (options.overload) await app.register(pressure, options.overload)
  await app.register(auth, { ...options.auth, groups, ...given({ keys, lookup, store }) })
  await app.register(upstreams, { upstreams: targets, pools, ...given({ health, notes }) })
  checkUpstreams(options)
  for (const warning of unreached({ groups, upstreams: targets, pools })) app.log.warn(warning)
  if (options.overload) await app.register(overload, shedding)
  await app.register(limits, options.limits ?? {})
  await app.register(validation, options.validation ?? {})
  await app.register(usage, options.usage ?? {})
  // Where the header alone is asked for, it says that it needs prices.
  if (options.prices !== undefined || options.costs?.header === true) {
    await app.register(costs, { ...options.prices, ...options.costs, factors: factorsOf(targets) })
  }
  if (options.labels !== undefined) await app.register(labels, options.labels)
  if (options.tracing !== false) await app.register(tracing, options.tracing ?? {})
  await app.register(forward, { ...options.forward, ...given({ maxQueued, queueMs, prefix }), routes })
  if (options.log !== false) await app.register(log, options.log ?? {})
}

/** Only the types are checked here, because Fastify takes `true` for no options. Each plugin checks its own options. */
const known = {
  anything: ['prefix', 'health', 'notes', 'groups', 'keys', 'lookup', 'store'],
  'a boolean': ['routes'],
  'an object': [
    'upstreams', 'pools', 'paths', 'auth', 'limits', 'validation', 'usage', 'prices', 'costs', 'labels', 'console', 'forward',
  ],
  'an object or false': ['metrics', 'log', 'tracing', 'overload'],
}

/** Price factors by upstream, for regions and contracts that replies do not mention. */
function factorsOf (upstreams: NonNullable<LlmGatewayOptions['upstreams']>): Record<string, number> {
  return Object.fromEntries(Object.entries(upstreams)
    .flatMap(([name, { priceFactor }]) => priceFactor === undefined ? [] : [[name, priceFactor]]))
}

/** Throws for a group whose upstream is missing, unknown or unfit for its protocols. The form of groups was checked by auth before. */
function checkUpstreams ({ groups, upstreams = {}, pools = {}, routes = true }: LlmGatewayOptions): void {
  const [first] = groupMistakes({ groups, upstreams, pools, complete: routes })
  const isNone = Object.keys(upstreams).length === 0
  const hint = isNone ? '; there is none: set routes: false if a mount of yours sends the requests' : ''
  if (first !== undefined) throw new OptionError(first.path, first.message + hint)
}

/**
 * The gateway as one plugin: its parts, registered in the order in which a request meets them (docs/architecture.md).
 *
 *     await app.register(llmGateway, {
 *       upstreams: { main: { url: 'https://provider.example', credential: process.env.PROVIDER_KEY } },
 *       groups: { chat: { protocols: ['chat_completions'], upstream: 'main' } },
 *       keys: [{ id: 'ci', group: 'chat', hash: 'sha256:...' }],
 *     })
 */
const llmGateway: FastifyPluginAsync<LlmGatewayOptions> = fp(registerGateway, { fastify: '5.x', name: 'fastify-llm-gateway' })

export default llmGateway
export type { AuthOptions, GroupOptions, KeyOptions, KeySource, Lookup, LookupKey } from './auth/index.js'
export type { HttpProxyOptions, ProxyOptions } from './forward/index.js'
export type { PoolOptions, UpstreamOptions } from './upstreams/index.js'
export type { ModelGateway, SettledListener } from './core/host/host-view.js'
export type { ModelRequest } from './core/call/model-request.js'
export type { Authorization, Refusal } from './limits/index.js'
export type { MetricsRegistry } from './metrics/index.js'
export type { RewriteUrlOptions } from './paths/index.js'
export type { Cost, CostPart } from './core/money/cost.js'
export type { Group, Key, KeyChange, Labels, Limits, Outcome, TokenUsage } from './core/types.js'
export type {
  ConsoleOptions, CostsOptions, PriceOptions, LabelsOptions, ForwardOptions, LimitsOptions, LogOptions, MetricsOptions, OverloadOptions,
  PathsOptions, TracingOptions, UpstreamsOptions, UsageOptions, ValidationOptions,
}
export {
  auth, consolePage, costs, createRewriteUrl, errors, forward, labels, limits, log, metrics, overload, paths, proxyOptions, tracing,
  upstreams, usage, validation,
}
