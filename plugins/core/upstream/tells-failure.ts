import { isObject } from '../body/json-object.js'

/** True if what stands at the place of an error is one: replies of success may have null there, an empty text or object, or 0. */
export function tellsFailure (error: unknown): boolean {
  if (typeof error === 'string' || typeof error === 'number') return Number(error) !== 0
  return isObject(error) && Object.keys(error).length > 0
}
