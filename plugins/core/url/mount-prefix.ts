import { OptionError } from '../config/options.js'
import { beforeVersions, belowPrefix, segmentsOf } from './segments.js'

/**
 * The path below which the model endpoints stand, without a slash at its end. In a scope of the host's that has a prefix
 * they stand below that: resolved by less, its requests would be none of ours and reach a mount unguarded. `given` is
 * told whole, or from the scope on, as the framework's own prefixes are. A version at its end is the one that paths have: none is doubled.
 */
export function mountPrefix (scope: string, given: string): string {
  if (/[:*(]/.test(scope)) throw new OptionError('prefix', `cannot be read from a scope at ${scope}: register the gateway outside of it`)
  const outer = beforeVersions(scope)
  const whole = belowPrefix(segmentsOf(given), segmentsOf(outer)) === null ? outer + given : given
  return beforeVersions(whole)
}
