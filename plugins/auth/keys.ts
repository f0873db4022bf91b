/** Keys as an operator writes them, checked, and found by the digests of their secrets. */
import { hash } from 'node:crypto'
import { didYouMean } from '../core/config/did-you-mean.js'
import { checkLabels } from '../core/config/labels.js'
import { checkOptions, missingText, OptionError } from '../core/config/options.js'
import { readTime } from '../core/config/read-time.js'
import type { Group, Key, Labels, Limits } from '../core/types.js'
import { checkLimits } from './check-limits.js'
import { isWellFormed } from './credential.js'

/** A key by its secret or by the hash of it; both at once fail the start. */
export type KeyOptions = KeyDetails & (KeyBySecret | KeyByHash)

interface KeyBySecret {
  /** The secret itself; only its digest is kept. Undefined, as for a variable that is not set, fails the start. */
  secret: string | undefined
  hash?: undefined
}

interface KeyByHash {
  /** SHA-256 of the secret: `sha256:` and 64 hex digits. */
  hash: string
  secret?: undefined
}

interface KeyDetails {
  /** Stands for the key in logs and the ledger. */
  id: string
  /** Name of its group. */
  group: string
  /**
   * ISO 8601 date and time from which the key is refused: `2027-01-01T00:00:00Z`.
   * @defaultValue never
   */
  expires?: string
  /**
   * The key is refused for now.
   * @defaultValue false
   */
  disabled?: boolean
  /** Limits of the key, within those of its group. */
  limits?: Limits
  /** As in a group; where both have a label, the key's counts. */
  labels?: Labels
}

/** The digest under which a secret is known: SHA-256, 64 lower-case hex digits. High-entropy keys need no slow hash. */
export function digestOf (secret: string): string {
  return hash('sha256', secret, 'hex')
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
    anything: ['id', 'group', 'secret', 'hash', 'expires'],
    'a boolean': ['disabled'],
    'an object': ['limits', 'labels'],
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
  if (typeof secret !== 'string' || !isWellFormed(secret)) {
    throw new OptionError(`${at}.secret`, 'must be visible ASCII without blanks or commas, as no request could carry it otherwise')
  }
  return digestOf(secret)
}
