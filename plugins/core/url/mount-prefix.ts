import { OptionError } from '../config/options.js'
import { beforeVersions, belowPrefix, segmentsOf } from './segments.js'

/**
 * The path below which the model endpoints are served, without a slash at its end. In a host's scope with a prefix they are below that:
 * resolved without it, its requests would not be recognised and reach a mount unguarded. `given` is the whole path, or the part below the
 * scope, like the framework's own prefixes. A version at its end is that of the paths, so it is not doubled.
 */
export function mountPrefix (scope: string, given: string): string {
  if (scope.includes(':')) throw new OptionError('prefix', `cannot be read from a scope at ${scope}: register the gateway outside of it`)
  const outer = beforeVersions(scope)
  const whole = belowPrefix(segmentsOf(given), segmentsOf(outer)) === null ? outer + given : given
  return beforeVersions(whole)
}
