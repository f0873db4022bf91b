import { OptionError } from '../core/config/options.js'

/** One mistake in the configuration, with its path: `groups.chat.limits.balance`. */
export interface Problem {
  readonly path: string
  readonly message: string
  /** Position in the file, counted from 1. */
  readonly line?: number
  readonly column?: number
}

/** The configuration file cannot be used. Carries every problem found, and only values that cannot be secrets. */
export class ConfigError extends Error {
  readonly problems: readonly Problem[]

  constructor (problems: readonly Problem[]) {
    super(problems.map(inWords).join('\n'))
    this.name = 'ConfigError'
    this.problems = problems
  }

  /** A line for each problem in the order of the file, in the form of compilers: `gateway.yaml:7: groups.chat: is required`. */
  toLines (file: string): string[] {
    const sorted = [...this.problems].sort((a, b) => (a.line ?? 0) - (b.line ?? 0))
    const lines = sorted.map((problem) => [file, problem.line, problem.column].filter((part) => part !== undefined)
      .join(':') + `: ${inWords(problem)}`)
    // The parser reports some twice.
    return [...new Set(lines)]
  }
}

/** Turns the error of an option, or of a missing package, into a problem of the file; null for any other error. */
export function problemOfOption (error: unknown): Problem | null {
  if (error instanceof OptionError) return { path: error.path, message: error.words }
  const { code, message } = Object(error)
  if (code !== 'LLM_GATEWAY_MISSING_PEER') return null
  const [path, ...words] = String(message).split(' ')
  return { path: String(path), message: words.join(' ') }
}

function inWords ({ path, message }: Problem): string {
  return path === '' ? message : `${path}: ${message}`
}
