/** Checks the answers of a host's own table: an unclear one lets nobody in. */
import { OptionError } from '../core/config/options.js'
import { checkLabels } from '../core/config/labels.js'
import type { Key } from '../core/types.js'
import { checkLimits } from './check-limits.js'
import type { LookupKey } from './options.js'

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
  const time = expiresAt === undefined || expiresAt === null ? null : Number(expiresAt)
  if (Number.isNaN(time)) throw new OptionError('lookup().expiresAt', 'must be milliseconds since the epoch')
  checkLimits('lookup().limits', limits)
  const labels = found.labels ?? null
  checkLabels('lookup().labels', labels ?? {})
  return { id, group, disabled: Boolean(disabled), expiresAt: time, limits, ...labels && { labels } }
}
