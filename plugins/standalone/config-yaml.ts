/**
 * Converts YAML text to plain values, with `${NAME}` replaced by environment variables. A variable is put into a value that has already
 * been parsed, so that nothing in it can become syntax. In the text its braces are hidden, because a YAML flow mapping (`{ credential:
 * ${NAME} }`) would take them for its own.
 */
import * as yaml from 'yaml'
import { joinPath } from '../core/config/join-path.js'
import { readYaml } from '../core/config/yaml-text.js'
import { ConfigError, type Problem } from './config-error.js'

export type Environment = Readonly<Record<string, string | undefined>>

interface Parsed {
  readonly value: unknown
  /** Variables that are not set; their values are replaced by a text. */
  readonly problems: readonly Problem[]
  /** Paths of values that contain a variable: these values are not shown. */
  readonly filled: ReadonlySet<string>
}

const variable = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g
const hidden = /\uE000\uE000([A-Za-z_][A-Za-z0-9_]*)\uE001/g

const notVariable =
  'begins a variable that is none: in its braces stands a name of letters, digits and underscores alone, without a default'

const inName = 'is a name with a variable, which would stay as it stands: variables are replaced in values alone'

export function hideVariables (text: string): string {
  return text.replace(variable, '\uE000\uE000$1\uE001')
}

/** Throws ConfigError for a syntax error, with line and column. */
export function parseYaml (text: string, env: Environment): Parsed {
  const { mistakes, value } = readYaml(yaml, hideVariables(text))
  if (mistakes.length > 0) {
    throw new ConfigError(mistakes.map(({ message, ...place }) => ({ path: '', message: `not valid YAML: ${message}`, ...place })))
  }
  const problems: Problem[] = []
  const filled = new Set<string>()
  return { value: substitute(value(), '', { env, problems, filled }), problems, filled }
}

interface Filling {
  readonly env: Environment
  readonly problems: Problem[]
  readonly filled: Set<string>
}

function substitute (value: unknown, path: string, filling: Filling): unknown {
  if (typeof value === 'string') return fill(value, path, filling)
  if (Array.isArray(value)) return value.map((item, index) => substitute(item, joinPath(path, index), filling))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([hiddenName, item]) => {
    const name = hiddenName.replace(hidden, (_, variableName: string) => `\${${variableName}}`)
    if (name !== hiddenName) filling.problems.push({ path: joinPath(path, name), message: inName })
    return [name, substitute(item, joinPath(path, name), filling)] as const
  })
  return Object.fromEntries(entries)
}

/** A variable in the form of a shell. */
const bare = /^\$[A-Z_][A-Z0-9_]*$/

function fill (value: string, path: string, { env, problems, filled }: Filling): string {
  // `${NAME:-default}` of other tools would stay as it is: as a secret, it would be one that everybody can read.
  if (value.includes('${')) problems.push({ path, message: notVariable })
  if (bare.test(value)) problems.push({ path, message: 'looks like a variable: the name of one stands in braces behind the $' })
  return value.replace(hidden, (_, name: string) => {
    filled.add(path)
    const found = env[name] ?? ''
    if (found === '') problems.push({ path, message: `environment variable ${name} is not set` })
    return found === '' ? 'unset' : found
  })
}
