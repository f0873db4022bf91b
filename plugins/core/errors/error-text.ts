import type { Family } from '../../protocols/types.js'
import type { GatewayError } from './gateway-error.js'

/** Stands in a body for the id of a request. */
const idPlace = '<request id>'

/** What stands before and after the ids, of errors that say the same to every caller: by family and code. */
const fixed = new Map<Family, ReadonlyMap<string, readonly string[]>>()

/**
 * An error in the family's envelope. `id` is one of ours, which needs no escaping. A caller with a wrong key is told the
 * same as the one before, and writing it anew was a seventh of our own work on a refusal.
 */
export function errorText (family: Family, error: GatewayError, id: string): string {
  return error.isFixed ? partsOf(family, error).join(id) : JSON.stringify(family.errorBody(error.facts(id)))
}

function partsOf (family: Family, error: GatewayError): readonly string[] {
  const known = fixed.get(family)?.get(error.code)
  if (known !== undefined) return known
  const parts = JSON.stringify(family.errorBody(error.facts(idPlace))).split(idPlace)
  fixed.set(family, new Map(fixed.get(family)).set(error.code, parts))
  return parts
}
