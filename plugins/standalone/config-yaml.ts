/**
 * YAML text -> plain values, with `${NAME}` replaced by environment variables. A variable is put into a value that has
 * already been parsed, so nothing in it can become syntax; in the text its braces are hidden, because a YAML flow
 * mapping (`{ credential: ${NAME} }`) would read them as its own.
 */
import { LineCounter, parseDocument } from 'yaml'
import { ConfigError, joinPath, type Problem } from './config-error.js'

export type Environment = Readonly<Record<string, string | undefined>>

const variable = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g
const hidden = /\uE000\uE000([A-Za-z_][A-Za-z0-9_]*)\uE001/g

const notVariable = 'begins a variable that is none: in its braces stands a name of letters, digits and underscores alone, without a default'

export function hideVariables (text: string): string {
  return text.replace(variable, '\uE000\uE000$1\uE001')
}

/** Throws ConfigError: bad syntax with its line, or the paths whose variable is not set. */
export function parseYaml (text: string, env: Environment): unknown {
  const lineCounter = new LineCounter()
  // Pretty errors quote the line, which may hold a secret.
  const document = parseDocument(hideVariables(text), { lineCounter, prettyErrors: false })
  const problems = document.errors.map((error): Problem => {
    const { line, col } = lineCounter.linePos(error.pos[0])
    return { path: '', message: `line ${line}, column ${col}: not valid YAML (${error.code})` }
  })
  if (problems.length > 0) throw new ConfigError(problems)
  const value = substitute(document.toJS(), '', env, problems)
  if (problems.length > 0) throw new ConfigError(problems)
  return value
}

function substitute (value: unknown, path: string, env: Environment, problems: Problem[]): unknown {
  if (typeof value === 'string') return fill(value, path, env, problems)
  if (Array.isArray(value)) return value.map((item, index) => substitute(item, joinPath(path, index), env, problems))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([hiddenName, item]) => {
    const name = hiddenName.replace(hidden, (_, variableName: string) => `\${${variableName}}`)
    return [name, substitute(item, joinPath(path, name), env, problems)] as const
  })
  return Object.fromEntries(entries)
}

function fill (value: string, path: string, env: Environment, problems: Problem[]): string {
  // Other tools' `${NAME:-default}` would stay as it stands, and as a secret it would be one that everybody can read.
  if (value.includes('${')) problems.push({ path, message: notVariable })
  return value.replace(hidden, (_, name: string) => {
    const found = env[name] ?? ''
    if (found === '') problems.push({ path, message: `environment variable ${name} is not set` })
    return found
  })
}
