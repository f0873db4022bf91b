/** Checks the answers of a host's own table: an unclear one lets nobody in. */
import { isObject } from '../core/body/json-object.js'
import { OptionError } from '../core/config/options.js'
import { checkLabels } from '../core/config/labels.js'
import type { Key } from '../core/types.js'
import { checkLimits } from './check-limits.js'
import type { LookupKey } from './options.js'

/** Other names for what ends a key: unread, it would never end. */
const endings: ReadonlyArray<[keyof LookupKey, RegExp, (value: unknown) => boolean]> = [
  ['expiresAt', named('exp|expire[sd]?|expiry|expiration|valid_?until|not_?after'), says],
  ['disabled', named('disabled?|revoked|blocked|suspended'), says],
  ['disabled', /^(?:is_?)?(?:enabled|active)$/i, isOff],
]

/** Less, but not nothing, is a time in seconds: in milliseconds it would have been in 1973. */
const leastMs = 1e11

function named (words: string): RegExp {
  return new RegExp(`^(?:is_?)?(?:${words})(?:_?(?:at|by|in|on|since|until|date|time|reason))?$`, 'i')
}

/**
 * A row of the host's table as a key; null if it found none. Throws `LLM_GATEWAY_OPTION` naming the field: an expiry that
 * cannot be read would never come. Rows of databases have null for nothing, and more columns than these.
 */
export function toKey (found: LookupKey | null | undefined): Key | null {
  if (!found) return null
  const { id, group, disabled, expiresAt } = found
  const limits = found.limits ?? {}
  if (typeof id !== 'string' || id === '') throw new OptionError('lookup().id', 'must be a string')
  if (typeof group !== 'string') throw new OptionError('lookup().group', 'must be a string')
  // Rows of some libraries have their columns in the prototype.
  const names = [found, Object(Object.getPrototypeOf(found))].flatMap((part) => Object.getOwnPropertyNames(part))
  for (const [field, alike, ends] of endings) {
    const unread = found[field] === undefined && names.find((name) => alike.test(name) && ends(Reflect.get(found, name)))
    if (unread) throw new OptionError(`lookup().${unread}`, `is not read: give ${field}`)
  }
  const time = expiresAt === undefined || expiresAt === null ? null : Number(expiresAt)
  if (time !== null && !(time <= 0 || time > leastMs)) throw new OptionError('lookup().expiresAt', 'must be milliseconds since the epoch')
  if (!isObject(limits)) throw new OptionError('lookup().limits', 'must be an object')
  checkLimits('lookup().limits', limits)
  const { labels } = found
  checkLabels('lookup().labels', labels ?? {})
  return { id, group, disabled: Boolean(disabled) && !isOff(disabled), expiresAt: time, limits, ...labels && { labels } }
}

/** What databases write for no: a bit of MySQL's is a Buffer of 0, one of PostgreSQL's a text. */
function isOff (value: unknown): boolean {
  return /^(?:[0fn\0]|no|off|false)$/i.test(String(value))
}

/** Neither nothing, nor no, nor a method. */
function says (value: unknown): boolean {
  return Boolean(value) && typeof value !== 'function' && !isOff(value)
}
