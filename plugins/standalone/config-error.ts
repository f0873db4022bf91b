/** One thing that is wrong in the configuration, at the path where it stands: `groups.chat.limits.balance`. */
export interface Problem {
  readonly path: string
  readonly message: string
  /** Where that is in the file, counted from 1. */
  readonly line?: number
}

/** The configuration file cannot be used. Carries every problem found, and no value of the file: those may be secrets. */
export class ConfigError extends Error {
  readonly problems: readonly Problem[]

  constructor (problems: readonly Problem[] = []) {
    super(problems.map(inWords).join('\n'))
    this.name = 'ConfigError'
    this.problems = problems
  }

  /** A line for each problem, as compilers write them: `gateway.yaml:7: groups.chat: is required`. */
  toLines (file: string): string[] {
    return this.problems.map((problem) => `${file}${problem.line === undefined ? '' : `:${problem.line}`}: ${inWords(problem)}`)
  }
}

function inWords ({ path, message }: Problem): string {
  return path === '' ? message : `${path}: ${message}`
}

/** `joinPath('keys', 0)` is `keys[0]`, `joinPath('groups.chat', 'limits')` is `groups.chat.limits`. */
export function joinPath (path: string, part: string | number): string {
  if (typeof part === 'number') return `${path}[${part}]`
  return path === '' ? part : `${path}.${part}`
}
