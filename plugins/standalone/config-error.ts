/** One thing that is wrong in the configuration, at the path where it stands: `groups.chat.limits.balance`. */
export interface Problem {
  readonly path: string
  readonly message: string
}

/** The configuration file cannot be used. Carries every problem found, and no value of the file: those may be secrets. */
export class ConfigError extends Error {
  readonly problems: readonly Problem[]

  constructor (problems: readonly Problem[] = []) {
    super(problems.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)).join('\n'))
    this.name = 'ConfigError'
    this.problems = problems
  }
}

/** `joinPath('keys', 0)` is `keys[0]`, `joinPath('groups.chat', 'limits')` is `groups.chat.limits`. */
export function joinPath (path: string, part: string | number): string {
  if (typeof part === 'number') return `${path}[${part}]`
  return path === '' ? part : `${path}.${part}`
}
