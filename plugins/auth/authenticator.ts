import { inspect } from 'node:util'
import type { FastifyRequest } from 'fastify'
import { clipped } from '../core/errors/clipped.js'
import { gatewayError, type GatewayError } from '../core/errors/gateway-error.js'
import type { ConfiguredParties } from '../core/money/budget-status.js'
import type { Gateway } from '../core/gateway.js'
import type { ModelCall } from '../core/call/model-call.js'
import { withDefaults } from '../core/config/options.js'
import { reasonOf } from '../core/balances/store-down.js'
import type { Group, Key, KeyChange } from '../core/types.js'
import { withTimeout } from '../core/with-timeout.js'
import { writeLog } from '../core/write-log.js'
import { checkKey, checkProtocol, checkVersion } from './access.js'
import { expectedCredential, findCredential } from './credential.js'
import { FailureBudget, networkOf, type Asker } from './failure-budget.js'
import { readGroups } from './groups.js'
import { KeyCache, type Load } from './key-cache.js'
import { digestOf, readKeys } from './keys.js'
import { toKey } from './lookup.js'
import { cacheDefaults, checkAuthOptions, type AuthOptions } from './options.js'

const maxUnknownGroups = 100

/** Decides who calls; without a promise if the key is in memory. */
export class Authenticator {
  readonly #options: AuthOptions
  readonly #gateway: Gateway
  readonly #groups: ReadonlyMap<string, Group>
  readonly #fixedKeys: ReadonlyMap<string, Key>
  readonly #cache: KeyCache
  readonly #optional: ReadonlySet<string>
  readonly #failures: FailureBudget | null
  /** Each is told once; a table may have any number. */
  readonly #unknownGroups = new Set<string>()

  constructor (options: AuthOptions, gateway: Gateway) {
    checkAuthOptions(options)
    this.#options = options
    this.#gateway = gateway
    this.#groups = readGroups(options.groups)
    this.#fixedKeys = readKeys(options.keys ?? [], this.#groups)
    const cacheOptions = withDefaults(cacheDefaults, options.cache ?? {})
    this.#cache = new KeyCache(cacheOptions, (result, seconds) => gateway.recorder.keyLookedUp(result, seconds))
    this.#optional = new Set(options.optionalSources)
    this.#failures = options.failures ? new FailureBudget(options.failures) : null
  }

  /** Some group has an upstream of its own. */
  get namesUpstreams (): boolean {
    return [...this.#groups.values()].some(({ upstream, routes = [] }) => upstream !== null || routes.length > 0)
  }

  get parties (): ConfiguredParties {
    return { groups: [...this.#groups.values()], keys: [...this.#fixedKeys.values()] }
  }

  get cacheSizes (): Readonly<Record<'positive' | 'negative', number>> {
    return this.#cache.sizes
  }

  invalidate (change: KeyChange): void {
    this.#cache.invalidate(change)
  }

  /** Null lets the request pass. */
  check (llm: ModelCall, request: FastifyRequest): GatewayError | null | Promise<GatewayError | null> {
    const { family } = llm.endpoint
    const found = findCredential(family, request.raw.rawHeaders, llm.auth.queryKeys, this.#optional)
    if (typeof found === 'string') return gatewayError(found, { expected: expectedCredential(family) })
    if (found.conflict) {
      this.#gateway.recorder.authFailed(llm.protocol, 'conflict')
      if (this.#options.conflict === 'reject') return gatewayError('duplicate_api_key')
    }
    llm.auth.keepSecret(found.secret)
    // Read now: over HTTP/2 `ip` is gone once the caller has left. A Unix socket has none: all its callers count as one.
    const asker = { digest: digestOf(found.secret), network: this.#failures === null ? '' : networkOf(String(request.ip)) }
    const retryAfterMs = this.#failures?.waitMs(asker, performance.now()) ?? null
    if (retryAfterMs !== null) return gatewayError('too_many_auth_failures', {}, { retryAfterMs })
    const key = this.#known(asker.digest)
    return key === undefined ? this.#ask(asker, found.secret, llm, request) : this.#judge(key, asker, llm, request)
  }

  /** Null: no such key. Undefined: the store must be asked. */
  #known (digest: string): Key | null | undefined {
    const fixed = this.#fixedKeys.get(digest)
    const { store, lookup } = this.#options
    if (fixed === undefined && (store !== undefined || lookup !== undefined)) return this.#cache.peek(digest)
    this.#gateway.recorder.keyLookedUp(fixed === undefined ? 'miss' : 'hit')
    return fixed ?? null
  }

  async #ask (asker: Asker, secret: string, llm: ModelCall, request: FastifyRequest): Promise<GatewayError | null> {
    // Who sends the same key meanwhile guesses nothing: a client with a wrong one would lock out its whole address for hours.
    const isGuess = !this.#cache.isAsked(asker.digest)
    try {
      const key = await this.#cache.load(asker.digest, this.#loadFor(secret, request))
      return this.#judge(key, asker, llm, request, isGuess)
    } catch (error) {
      writeLog(request.log, 'error', { reason: withoutSecret(textOf(error), secret) }, 'the key store cannot answer')
      return gatewayError('key_store_unavailable')
    }
  }

  #loadFor (secret: string, request: FastifyRequest): Load {
    const { store, lookup, lookupTimeoutMs = 5_000 } = this.#options
    const load: Load = store === undefined ? async () => toKey(await lookup?.(secret, request)) : async (digest) => await store.find(digest)
    return (digest) => withTimeout(lookupTimeoutMs, load(digest))
  }

  #judge (key: Key | null, asker: Asker, llm: ModelCall, request: FastifyRequest, isGuess = true): GatewayError | null {
    const invalid = key === null ? gatewayError('invalid_api_key') : checkKey(key, Date.now())
    if (key === null || invalid !== null) {
      if (isGuess) this.#failures?.wrong(asker, performance.now())
      return invalid
    }
    this.#failures?.right(asker)
    const { endpoint } = llm
    const group = this.#groups.get(key.group)
    llm.auth.key = key
    llm.auth.group = group ?? null
    if (group === undefined) this.#tellUnknown(key.group, request)
    const accepted = this.#options.versions?.[endpoint.family.name]
    // A WebSocket upgrade has no version header.
    const ofVersion = endpoint.protocol === 'sockets' ? null : checkVersion(endpoint.family, request.headers, accepted)
    return checkProtocol(group, endpoint) ?? ofVersion
  }

  #tellUnknown (group: string, { log }: FastifyRequest): void {
    if (this.#unknownGroups.has(group) || this.#unknownGroups.size === maxUnknownGroups) return
    this.#unknownGroups.add(group)
    writeLog(log, 'warn', { group: clipped(group) }, 'a key is refused with 403: its group is not one of the groups')
  }
}

/** A host may reject with anything, even with something that has no text. */
function textOf (error: unknown): string {
  return error instanceof Error ? `${error.name}: ${reasonOf(error)}` : inspect(error, { depth: 0 })
}

/** A host's `lookup` gets the secret, so its error may contain it. */
function withoutSecret (text: string, secret: string): string {
  const bytes = Buffer.from(secret)
  const spellings = [secret, encodeURIComponent(secret), bytes.toString('base64'), bytes.toString('base64url')]
  return spellings.reduce((rest, spelling) => rest.replaceAll(spelling, '[key]'), text)
}
