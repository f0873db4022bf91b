/** Groups and keys as an operator writes them, checked and put into the shape that requests are decided on. */
import { hash } from 'node:crypto'
import { checkBudgets } from '../core/budget.js'
import { didYouMean } from '../core/did-you-mean.js'
import { checkChoice, checkOptions, checkTexts, missingText, OptionError } from '../core/options.js'
import { protocolNames, type ProtocolName } from '../protocols/index.js'
import { checkLabels } from '../core/labels.js'
import { readTime } from '../core/read-time.js'
import type { Group, Key, Labels, Limits } from '../core/types.js'
import { isPlain } from './credential.js'

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
   * @defaultValue the only upstream there is, or the host's mount
   */
  upstream?: Target | Partial<Record<ProtocolName, Target>>
  /**
   * Upstreams for some models, such as `[{ models: ['small-*'], upstream: 'cheap' }]`: the first whose `models` fit wins over `upstream`.
   * @defaultValue none
   */
  routes?: ReadonlyArray<RouteOptions<Target>>
  /**
   * False lacks every protocol: the group is for calls that do not pass this gateway.
   * @defaultValue true
   */
  thirdParty?: boolean
  /**
   * Models that may be asked for, by the names that callers use.
   * @defaultValue any
   */
  models?: readonly string[]
  /**
   * What its keys may spend together.
   * @defaultValue none
   */
  limits?: Limits
  /**
   * While the store of the limits cannot answer: refuse requests (`closed`), or let each process spend a share of its own (`local`).
   * @defaultValue 'closed'
   */
  onStoreFailure?: 'closed' | 'local'
  /**
   * Who the group's requests are for, in reports: `{ team: 'search' }`.
   * @defaultValue none
   */
  labels?: Labels
}

/** A key by its secret or by the hash of it; both at once fail the start. */
export type KeyOptions = KeyDetails & (KeyBySecret | KeyByHash)

interface KeyBySecret {
  /** The secret itself; only its digest is kept. Undefined, as of a variable that is not set, fails the start. */
  secret: string | undefined
  hash?: undefined
}

interface KeyByHash {
  /** SHA-256 of the secret: `sha256:` and 64 hex digits. */
  hash: string
  secret?: undefined
}

interface KeyDetails {
  /** Names the key in metrics, logs and the ledger, and never its secret. */
  id: string
  /** Name of its group. */
  group: string
  /**
   * ISO 8601 date and time from which on the key is refused: `2027-01-01T00:00:00Z`.
   * @defaultValue never
   */
  expires?: string
  /**
   * Refused for now.
   * @defaultValue false
   */
  disabled?: boolean
  /** What the key may spend, within what its group may. */
  limits?: Limits
  /** As of a group; where both say something, the key's counts. */
  labels?: Labels
}

/** Limits with the least that each may be: none of the others could ever let a request pass, where a balance may be filled again. */
const leastLimits: ReadonlyMap<string, number> = new Map([
  ['requestsPerMinute', 1], ['tokensPerMinute', 1], ['concurrency', 1], ['balance', 0],
])

/** The digest under which a secret is known: SHA-256, 64 lower-case hex digits. High-entropy keys need no slow hash. */
export function digestOf (secret: string): string {
  return hash('sha256', secret, 'hex')
}

/** Throws `LLM_GATEWAY_OPTION` naming the field. */
export function readGroups (groups: Readonly<Record<string, GroupOptions>>): Map<string, Group> {
  return new Map(Object.entries(groups).map(([id, options]) => [id, readGroup(id, options)]))
}

function readGroup (id: string, options: GroupOptions): Group {
  const at = `groups.${id}`
  // By name, too: a misspelled `thirdParty` or `models` would leave a group open.
  checkOptions(at, options, {
    protocols: 'anything',
    upstream: 'anything',
    routes: 'anything',
    thirdParty: 'a boolean',
    models: 'anything',
    limits: 'an object',
    onStoreFailure: 'anything',
    labels: 'an object',
  })
  checkChoice(`${at}.onStoreFailure`, options.onStoreFailure, ['closed', 'local'])
  const { protocols, upstream = null, routes = [], thirdParty = true, models, limits = {}, onStoreFailure = 'closed', labels } = options
  if (!Array.isArray(protocols)) throw new OptionError(`${at}.protocols`, 'must be a list')
  const unknown = protocols.find((name) => !isProtocol(name))
  if (unknown !== undefined) {
    throw new OptionError(
    `${at}.protocols`,
    `holds ${JSON.stringify(unknown)}, which is none of ${protocolNames.join(', ')}${didYouMean(String(unknown), protocolNames)}`
    )
  }
  if (upstream !== null && !isUpstream(upstream)) throw new OptionError(`${at}.upstream`, 'must be a name, or one for each protocol')
  checkNames(`${at}.upstream`, upstream)
  checkRoutes(`${at}.routes`, routes)
  checkTexts(`${at}.models`, models)
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
    checkOptions(own, Object(route), { models: 'anything', upstream: 'a string' })
    const { models, upstream } = Object(route)
    const areNames = Array.isArray(models) && models.length > 0 && models.every((name) => typeof name === 'string' && name !== '')
    if (!areNames) throw new OptionError(`${own}.models`, 'must be a list of names, with * for any part of one')
    if (upstream === undefined) throw new OptionError(`${own}.upstream`, 'is required')
  })
}

/** A misspelled protocol would leave its requests without an upstream. */
function checkNames (at: string, upstream: string | Readonly<Record<string, string>> | null): void {
  const misspelled = Object.keys(typeof upstream === 'string' ? {} : upstream ?? {}).find((name) => !isProtocol(name))
  if (misspelled !== undefined) {
    throw new OptionError(
      at, `holds ${JSON.stringify(misspelled)}, which is none of ${protocolNames.join(', ')}${didYouMean(misspelled, protocolNames)}`
    )
  }
}

function isProtocol (name: string): boolean {
  return protocolNames.some((known) => known === name)
}

function isUpstream (upstream: unknown): boolean {
  const names: unknown[] = typeof upstream === 'object' ? Object.values(Object(upstream)) : [upstream]
  return names.every((name) => typeof name === 'string')
}

/** Keys by digest. Throws `LLM_GATEWAY_OPTION` naming the field, never the secret. */
export function readKeys (keys: readonly KeyOptions[], groups: ReadonlyMap<string, Group>): Map<string, Key> {
  const byDigest = new Map<string, Key>()
  const ids = new Set<string>()
  keys.forEach((options, i) => {
    const key = readKey(`keys[${i}]`, options, groups)
    if (ids.has(key.id)) throw new OptionError(`keys[${i}].id`, 'is there twice')
    ids.add(key.id)
    const digest = readDigest(`keys[${i}]`, options)
    if (byDigest.has(digest)) throw new OptionError(`keys[${i}]`, 'has the secret of another key')
    byDigest.set(digest, key)
  })
  return byDigest
}

function readKey (at: string, options: KeyOptions, groups: ReadonlyMap<string, Group>): Key {
  checkOptions(at, options, {
    id: 'anything',
    group: 'anything',
    secret: 'anything',
    hash: 'anything',
    expires: 'anything',
    disabled: 'a boolean',
    limits: 'an object',
    labels: 'an object',
  })
  const { id, group, expires, disabled = false, limits = {}, labels } = options
  if (typeof id !== 'string' || id === '') throw new OptionError(`${at}.id`, 'must be a string')
  if (!groups.has(group)) {
    const meant = didYouMean(String(group), [...groups.keys()])
    throw new OptionError(`${at}.group`, `names ${String(group)}, which is not one of the groups${meant}`)
  }
  const expiresAt = expires === undefined ? null : /T/.test(expires) ? readTime(expires) : NaN
  if (Number.isNaN(expiresAt)) throw new OptionError(`${at}.expires`, 'must be an ISO 8601 date and time, such as 2027-01-01T00:00:00Z')
  checkLimits(`${at}.limits`, limits)
  checkLabels(`${at}.labels`, labels ?? {})
  return { id, group, disabled, expiresAt, limits, ...labels && { labels } }
}

function readDigest (at: string, { secret, hash: given }: KeyOptions): string {
  if (given !== undefined) {
    if (secret !== undefined) throw new OptionError(`${at}.hash`, 'cannot stand beside a secret')
    if (!/^sha256:[0-9a-f]{64}$/.test(given)) throw new OptionError(`${at}.hash`, 'must be sha256: and 64 hex digits')
    return given.slice('sha256:'.length)
  }
  // An empty secret would make every request without a key a known one.
  const missing = missingText(secret)
  if (missing !== null) throw new OptionError(`${at}.secret`, missing)
  if (typeof secret !== 'string' || !isPlain(secret)) {
    throw new OptionError(`${at}.secret`, 'must be visible ASCII without blanks or commas, as no request could carry it otherwise')
  }
  return digestOf(secret)
}

/** Throws `LLM_GATEWAY_OPTION` for a limit that is not known or no whole number. */
export function checkLimits (at: string, { budgets, ...limits }: Limits): void {
  if (budgets !== undefined) checkBudgets(`${at}.budgets`, budgets)
  for (const [name, value] of Object.entries(limits)) {
    const least = leastLimits.get(name)
    if (least === undefined) throw new OptionError(`${at}.${name}`, `is not known${didYouMean(name, [...leastLimits.keys(), 'budgets'])}`)
    if (!Number.isSafeInteger(value) || value < least) throw new OptionError(`${at}.${name}`, `must be a whole number of at least ${least}`)
  }
}
