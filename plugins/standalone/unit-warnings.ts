/** Numbers that are valid and so small that another unit was probably meant: seconds, megabytes, or the price of one token. */
import { isObject } from '../core/body/json-object.js'
import { rateNames } from '../costs/price-row.js'
import { joinPath } from '../core/config/join-path.js'

interface Usual {
  /** The least that is usual for the options of these names. */
  readonly least: number
  readonly words: string
  readonly names: readonly string[]
}

const milliseconds = 'is in milliseconds: were seconds meant?'
const bytes = 'is in bytes: were megabytes meant?'
const usuals: readonly Usual[] = [
  { least: 10, words: milliseconds, names: ['intervalMs'] },
  { least: 20, words: milliseconds, names: ['queueMs', 'maxMs', 'negativeTtlMs'] },
  { least: 100, words: milliseconds, names: ['connectTimeoutMs', 'shutdownGraceMs', 'ttlMs', 'timeoutMs'] },
  {
    least: 1_000,
    words: milliseconds,
    names: ['headersTimeoutMs', 'idleTimeoutMs', 'keepAliveCommentMs', 'attemptTimeoutMs', 'deadlineMs', 'staleMs', 'holdTtlMs'],
  },
  { least: 100_000, words: milliseconds, names: ['affinityTtlMs', 'maxFileAgeMs'] },
  // A day: what is older is deleted.
  { least: 86_400_000, words: milliseconds, names: ['keepMs'] },
  { least: 1_024, words: bytes, names: ['maxBodyBytes', 'maxBodyBytesByEndpoint', 'maxBytes'] },
  { least: 65_536, words: bytes, names: ['maxHeldBytes', 'maxFileBytes'] },
  { least: 300, words: 'is in tokens: were thousands meant?', names: ['maxInputTokens', 'maxOutputTokens'] },
  { least: 0.25, words: 'is a factor of all prices: was a discount meant?', names: ['priceFactor'] },
  { least: 0.0001, words: 'is for a million tokens: is it the price of one?', names: rateNames },
]
const usualOf = new Map(usuals.flatMap((usual) => usual.names.map((name) => [name, usual] as const)))

/** A price list in another unit is one mistake, and would be thousands of lines at each reload. */
const most = 20

/** Warnings for the operator; each begins with the path of the option, and the last of many tells how many more there are. */
export function unitWarnings (config: unknown): string[] {
  const warnings = warningsIn(config, '', '')
  const more = warnings.length - most
  return more > 0 ? [...warnings.slice(0, most), `further numbers as small: ${more}`] : warnings
}

/** 0 switches off, and is no mistake. */
function warningsIn (value: unknown, path: string, name: string): string[] {
  if (Array.isArray(value)) return value.flatMap((item, index) => warningsIn(item, joinPath(path, index), name))
  if (isObject(value)) {
    // An entry whose own name says nothing, such as an endpoint's id, has the unit of its section.
    return Object.entries(value).flatMap(([key, item]) => warningsIn(item, joinPath(path, key), usualOf.has(key) ? key : name))
  }
  const { least = 0, words = '' } = usualOf.get(name) ?? {}
  return typeof value === 'number' && value > 0 && value < least ? [`${path}: ${value} ${words}`] : []
}
