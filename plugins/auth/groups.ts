/** Groups as an operator writes them, checked and put into the shape that requests are decided on. */
import { isObject } from '../core/body/json-object.js'
import { checkChoice, checkNames, checkOptions, checkTexts, checkWholeName, OptionError } from '../core/config/options.js'
import { protocolNames, type ProtocolName } from '../protocols/index.js'
import { checkLabels } from '../core/config/labels.js'
import type { Group, Labels, Limits } from '../core/types.js'
import { checkLimits } from './check-limits.js'

export interface RouteOptions<Target extends string = string> {
  /** Names of models; `*` stands for any part of one. */
  readonly models: readonly string[]
  /** Name of an upstream or a pool. */
  readonly upstream: Target
}

/** `Target`: the names of upstreams and pools, where a host lists them for the compiler. */
export interface GroupOptions<Target extends string = string> {
  /** Protocols that keys of this group may use; an empty list allows none. */
  protocols: readonly ProtocolName[]
  /**
   * Name of an upstream or a pool, or one for each protocol: `{ chat_completions: 'main', messages: 'other' }`.
   * @defaultValue the only upstream there is; with `routes: false` the host's mount
   */
  upstream?: Target | Partial<Record<ProtocolName, Target>>
  /**
   * Upstreams for some models, such as `[{ models: ['small-*'], upstream: 'cheap' }]`. The first match wins over `upstream`.
   * @defaultValue none
   */
  routes?: ReadonlyArray<RouteOptions<Target>>
  /**
   * False allows no protocol: the group is for calls that do not pass through this gateway.
   * @defaultValue true
   */
  thirdParty?: boolean
  /**
   * Models that may be asked for, by the names that callers use.
   * @defaultValue any
   */
  models?: readonly string[]
  /**
   * Limits that its keys share.
   * @defaultValue none
   */
  limits?: Limits
  /**
   * What to do while the store of the limits cannot answer: refuse requests (`closed`), or let each process spend a share (`local`).
   * @defaultValue `closed`
   */
  onStoreFailure?: 'closed' | 'local'
  /**
   * Who the group's requests are for, in reports: `{ team: 'search' }`.
   * @defaultValue none
   */
  labels?: Labels
}

/** Throws `LLM_GATEWAY_OPTION` naming the field. */
export function readGroups (groups: Readonly<Record<string, GroupOptions>>): Map<string, Group> {
  return new Map(Object.entries(groups).map(([id, options]) => [id, readGroup(id, options)]))
}

function readGroup (id: string, options: GroupOptions): Group {
  const at = `groups.${id}`
  // By name, too: a misspelled `thirdParty` or `models` would leave a group open.
  checkOptions(at, options, {
    anything: ['protocols', 'upstream', 'routes', 'models', 'onStoreFailure'],
    'a boolean': ['thirdParty'],
    'an object': ['limits', 'labels'],
  })
  checkChoice(`${at}.onStoreFailure`, options.onStoreFailure, ['closed', 'local'])
  const { protocols, upstream = null, routes = [], thirdParty = true, models, limits = {}, onStoreFailure = 'closed', labels } = options
  if (!Array.isArray(protocols)) throw new OptionError(`${at}.protocols`, 'must be a list')
  checkNames(`${at}.protocols`, protocols, protocolNames)
  if (options.upstream !== undefined && !isUpstream(upstream)) {
    throw new OptionError(`${at}.upstream`, 'must be a name, or one for each protocol')
  }
  // A misspelled one would leave its requests without an upstream.
  if (isObject(upstream)) checkNames(`${at}.upstream`, Object.keys(upstream), protocolNames)
  checkRoutes(`${at}.routes`, routes)
  checkTexts(`${at}.models`, models)
  models?.forEach((name, index) => checkWholeName(`${at}.models[${index}]`, name))
  checkLimits(`${at}.limits`, limits)
  checkLabels(`${at}.labels`, labels ?? {})
  return {
    id,
    protocols: new Set(protocols),
    thirdParty,
    upstream,
    routes,
    models: models === undefined ? null : new Set(models),
    limits,
    onStoreFailure,
    ...labels && { labels },
  }
}

function checkRoutes (at: string, routes: unknown): void {
  if (!Array.isArray(routes)) throw new OptionError(at, 'must be a list')
  routes.forEach((route: unknown, i) => {
    const own = `${at}[${i}]`
    checkOptions(own, Object(route), { anything: ['models'], 'a string': ['upstream'] })
    const { models, upstream } = Object(route)
    const areNames = Array.isArray(models) && models.length > 0 && models.every((name) => typeof name === 'string' && name !== '')
    if (!areNames) throw new OptionError(`${own}.models`, 'must be a list of names, with * for any part of one')
    if (upstream === undefined) throw new OptionError(`${own}.upstream`, 'is required')
  })
}

function isUpstream (upstream: unknown): boolean {
  const names: unknown[] = isObject(upstream) ? Object.values(upstream) : [upstream]
  return names.every((name) => typeof name === 'string')
}
