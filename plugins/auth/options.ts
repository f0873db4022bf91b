import type { FastifyRequest } from 'fastify'
import { checkChoice, checkMethods, checkNames, checkOptions, checkTexts, OptionError } from '../core/config/options.js'
import { isObject } from '../core/body/json-object.js'
import { families, type FamilyName, type OptionalSource } from '../protocols/index.js'
import type { Key, KeyChange, Labels, Limits } from '../core/types.js'
import type { FailureOptions } from './failure-budget.js'
import type { GroupOptions } from './groups.js'
import type { KeyCacheOptions } from './key-cache.js'
import type { KeyOptions } from './keys.js'

/** What a host's own table knows about a credential. */
export interface LookupKey {
  /** Stands for the key in logs and the ledger. */
  id: string
  /** Name of its group. */
  group: string
  disabled?: boolean
  /** Milliseconds since the epoch, null for never. */
  expiresAt?: number | null
  limits?: Limits
  labels?: Labels
}

/** A host's own table: credential -> key, null for unknown. */
export type Lookup = (credential: string, request: FastifyRequest) => LookupKey | null | Promise<LookupKey | null>

/** The part of a key store that auth needs; the engines in `plugins/state/` have it. */
export interface KeySource {
  /** A key by the SHA-256 of its secret, 64 lower-case hex digits; null for none. Rejects where nobody can answer. */
  find: (digest: string) => Promise<Key | null>
  /** Calls `listener` for keys and groups that changed. Returns a function that stops it. */
  onChange: (listener: (change: KeyChange) => void) => () => void
  /** All keys, so that the console can show their budgets. */
  list?: () => AsyncIterable<Key>
}

export interface AuthOptions<Target extends string = string> {
  /** Who may do what, by the group's name: `{ chat: { protocols: ['chat_completions'], upstream: 'main' } }`. */
  groups: Record<string, GroupOptions<Target>>
  /**
   * Keys of the configuration file. They are held in memory and never expire from it.
   * @defaultValue `[]`
   */
  keys?: KeyOptions[]
  /**
   * Issued keys. Asked for keys that are not in `keys`.
   * @defaultValue none
   */
  store?: KeySource
  /**
   * An existing gateway's own table. Its answer is cached by the credential's digest, so it must depend on the credential
   * alone. If it rejects, the caller gets 503, never 401. Excludes `store`.
   * @defaultValue none
   */
  lookup?: Lookup
  /**
   * How long `lookup` or `store` may take, in milliseconds; after that it has failed.
   * @defaultValue 5,000
   */
  lookupTimeoutMs?: number
  /**
   * How known and unknown keys are remembered.
   * @defaultValue `{}`
   */
  cache?: Partial<KeyCacheOptions>
  /**
   * Slows down guessing of keys: an address (IPv6: a /64) that sends more wrong keys per minute gets 429 without a look at its key,
   * until its budget has grown again. Keys that were right from that address before are still let in. The address is
   * `request.ip`: behind a proxy, set Fastify's `trustProxy`. Each process has budgets of its own.
   * @defaultValue false: no bound
   */
  failures?: FailureOptions | false
  /**
   * What to do with two different credentials in one request: the family's `first` source wins and the conflict is counted, or `reject`.
   * @defaultValue `first`
   */
  conflict?: 'first' | 'reject'
  /**
   * Credential sources that are off by default, by the names that the families give them.
   * @defaultValue `[]`
   */
  optionalSources?: OptionalSource[]
  /**
   * What to do with a path that has a version segment but is no known endpoint, below a mount of the host that also serves model
   * endpoints: `refuse` it with 404, because no rule says who may use it, or `leave` it to the mount, without asking for a key.
   * Mounts that spread `proxyOptions()` have an option of their own.
   * @defaultValue `refuse`
   */
  unknown?: 'refuse' | 'leave'
  /**
   * Accepted values of a family's version header, by family.
   * @defaultValue those that current official clients send
   */
  versions?: Partial<Record<FamilyName, string[]>>
}

export const cacheDefaults: KeyCacheOptions = {
  max: 10_000, ttlMs: 30_000, negativeMax: 1_000, negativeTtlMs: 5_000, staleMs: 300_000, maxLoads: 256, maxLoadsPerSecond: 5_000,
}

/** Throws `LLM_GATEWAY_OPTION` naming the option. */
export function checkAuthOptions (options: AuthOptions): void {
  const { groups, keys = [], store, lookup, ...own } = options
  checkSources(groups, keys, store, lookup)
  checkOptions('auth', own, {
    'a whole number of at least 1': ['lookupTimeoutMs'],
    'an object': ['cache', 'versions'],
    'an object or false': ['failures'],
    anything: ['conflict', 'optionalSources', 'unknown'],
  })
  const { cache = {}, optionalSources = [], versions = {} } = own
  checkChoice('auth.conflict', options.conflict, ['first', 'reject'])
  checkChoice('auth.unknown', options.unknown, ['refuse', 'leave'])
  checkOptions('auth.cache', cache, {
    'a whole number of at least 1': ['max', 'negativeMax', 'maxLoads', 'maxLoadsPerSecond'],
    'a whole number of at least 0': ['ttlMs', 'negativeTtlMs', 'staleMs'],
  })
  if (options.failures) checkFailures(options.failures)
  if (!Array.isArray(optionalSources)) throw new OptionError('auth.optionalSources', 'must be a list')
  checkNames('auth.optionalSources', optionalSources, optionalNames())
  checkNames('auth.versions', Object.keys(versions), Object.keys(families))
  for (const [family, accepted] of Object.entries(versions)) checkTexts(`auth.versions.${family}`, accepted)
}

/** The messages name these options as in the bundle, which has them beside `auth`. */
function checkSources (groups: unknown, keys: unknown, store: unknown, lookup: unknown): void {
  if (groups === undefined) throw new OptionError('groups', 'is required')
  if (!isObject(groups)) throw new OptionError('groups', 'must be an object')
  if (!Array.isArray(keys)) throw new OptionError('keys', 'must be a list')
  if (lookup !== undefined && typeof lookup !== 'function') throw new OptionError('lookup', 'must be a function')
  if (store === undefined) return
  if (!isObject(store)) throw new OptionError('store', 'must be an object')
  if (lookup !== undefined) throw new OptionError('lookup', 'cannot stand beside a store')
  if (Object.hasOwn(store, 'balances')) throw new OptionError('store', 'is a whole state: give its keys instead')
  checkMethods('store', store, ['find', 'onChange'])
}

function checkFailures (failures: Partial<FailureOptions>): void {
  checkOptions('auth.failures', failures, { 'a whole number of at least 1': ['perMinute', 'maxAddresses'] })
  if (failures.perMinute === undefined) throw new OptionError('auth.failures.perMinute', 'is required')
}

function optionalNames (): string[] {
  return Object.values(families).flatMap(({ credentials }) => credentials.flatMap(({ optional }) => optional ?? []))
}
