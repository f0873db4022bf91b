import createError from '@fastify/error'
import { didYouMean } from './did-you-mean.js'
import { isObject } from '../body/json-object.js'
import { longestTimerMs } from '../with-timeout.js'

/** A plugin option or configuration field is wrong. Thrown at registration; the message names the option's path. */
export class OptionError extends createError<[string, string]>('LLM_GATEWAY_OPTION', 'option %s %s', 500) {
  /** The option, whose name may contain blanks, such as an invalid header name, and the message about it. */
  readonly path: string
  readonly words: string

  constructor (path: string, words: string) {
    super(path, words)
    this.path = path
    this.words = words
  }
}

/** The error for a mount that relies on the gateway, but below which nothing would count as a model request. `pattern`: of its route. */
export function unguardedMount (pattern: string): Error {
  return new OptionError(
    'prefix', `must be what stands before the version below ${pattern}: that mount spreads proxyOptions(), and would ask nobody for a key`
  )
}

/** A program or package that the configuration needs is not installed. */
export const MissingPeerError = createError<[string, string]>(
  'LLM_GATEWAY_MISSING_PEER', '%s needs a package that is not installed: npm install %s', 500
)

type Check = (value: unknown) => boolean

function isWhole (least: number, most = Infinity): Check {
  return (value) => Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= most
}

const checks = {
  anything: () => true,
  'a string': (value) => typeof value === 'string' && value !== '',
  'a boolean': (value) => typeof value === 'boolean',
  'a function': (value) => typeof value === 'function',
  'an object': isObject,
  'an object or false': (value) => value === false || isObject(value),
  'a whole number of at least 0': isWhole(0),
  'a whole number of at least 1': isWhole(1),
  'a whole number of 0 to 2147483647': isWhole(0, longestTimerMs),
  'a whole number of 1 to 2147483647': isWhole(1, longestTimerMs),
} satisfies Record<string, Check>

/** Names of options, by what they must be. */
type OptionTable = Readonly<Partial<Record<keyof typeof checks, readonly string[]>>>

const checksByWords: ReadonlyMap<string, Check> = new Map(Object.entries(checks))

/**
 * Checks a plugin's options against a table of what they must be; an absent option is valid, an unknown one is not. Throws
 * `LLM_GATEWAY_OPTION`, naming `plugin.option`, and every other wrong option.
 */
export function checkOptions (plugin: string, options: object, table: OptionTable): void {
  if (!isObject(options)) throw new OptionError(plugin, 'must be an object')
  const mistakes = Object.entries(options).flatMap(([name, value]) => {
    const words = mistakeIn(name, value, table)
    return words === null ? [] : [{ path: `${plugin}.${name}`, words }]
  })
  const [first, ...others] = mistakes
  if (first === undefined) return
  throw new OptionError(first.path, [first.words, ...others.map(({ path, words }) => `${path} ${words}`)].join('; '))
}

function mistakeIn (name: string, value: unknown, table: OptionTable): string | null {
  const [words] = Object.entries(table).find(([, names]) => names.includes(name)) ?? []
  if (words === undefined) return `is not known${didYouMean(name, Object.values(table).flat())}`
  return value === undefined || checksByWords.get(words)?.(value) === true ? null : `must be ${words}`
}

/** Throws `LLM_GATEWAY_OPTION` if the value lacks a required method: for example a whole state in place of its keys. */
export function checkMethods (option: string, value: object | undefined, methods: readonly string[]): void {
  if (value === undefined) return
  const missing = methods.find((name) => typeof Reflect.get(value, name) !== 'function')
  if (missing !== undefined) throw new OptionError(option, `has no method ${missing}`)
}

/** Throws `LLM_GATEWAY_OPTION` if an option is given and is no list of texts that are not empty. */
export function checkTexts (option: string, value: unknown): void {
  if (value === undefined) return
  if (!Array.isArray(value)) throw new OptionError(option, 'must be a list')
  const wrong = value.findIndex((text) => typeof text !== 'string' || text === '')
  if (wrong >= 0) throw new OptionError(`${option}[${wrong}]`, 'must be a text that is not empty')
}

/** Throws `LLM_GATEWAY_OPTION` for a pattern where models are told by their names: it would fit none of them, in silence. */
export function checkWholeName (option: string, model: string): void {
  if (model.includes('*')) throw new OptionError(option, 'must be the whole name of a model: only those of routes and prices may hold *')
}

/** The message for a missing text, null if there is one: mostly it is read from an environment variable that is not set. */
export function missingText (value: unknown): string | null {
  // As a text, too, which a template makes of it, and everybody can guess.
  if (/^(?:undefined|null)$/.test(String(value))) return `is ${String(value)}: where it is read from an environment variable, that one is not set`
  return value === '' ? 'is empty: where it is read from an environment variable, that one is set to nothing' : null
}

/** Throws `LLM_GATEWAY_OPTION` if an option is given and is none of its values. */
export function checkChoice (option: string, value: unknown, choices: readonly string[]): void {
  if (value !== undefined && !choices.some((choice) => choice === value)) throw new OptionError(option, `must be ${choices.join(' or ')}`)
}

/** Throws `LLM_GATEWAY_OPTION` if a list holds anything but these names. */
export function checkNames (option: string, names: readonly unknown[], known: readonly string[]): void {
  const isUnknown = (name: unknown): boolean => !known.some((each) => each === name)
  if (!names.some(isUnknown)) return
  // It may be undefined: read from a variable that is not set.
  const unknown = names.find(isUnknown)
  const meant = didYouMean(String(unknown), known)
  throw new OptionError(option, `holds ${JSON.stringify(unknown)}, which is none of ${known.join(', ')}${meant}`)
}

/** An option that is missing, or undefined because its variable is not set, gets its default. */
export function withDefaults<T extends object> (defaults: T, options: Partial<T>): T {
  return { ...defaults, ...given(options) }
}

type Given<T> = { [Name in keyof T]?: Exclude<T[Name], undefined> }

/** The options that are not undefined. */
export function given<T extends object> (options: T): Given<T> {
  const some: Given<T> = {}
  return Object.assign(some, Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)))
}
