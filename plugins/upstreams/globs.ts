import { globOf } from '../core/config/glob.js'

/** Matches names against any of the patterns; `*` is any part of a name, also an empty one. */
export function compileGlobs (patterns: readonly string[]): (name: string) => boolean {
  const exact = new Set(patterns.filter((pattern) => !pattern.includes('*')))
  const open = patterns.filter((pattern) => pattern.includes('*')).map(globOf)
  return (name) => exact.has(name) || open.some((fits) => fits(name))
}
