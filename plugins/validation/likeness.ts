import { endpoints, type Endpoint } from '../protocols/index.js'
import type { Checks } from './schemas.js'

/**
 * Path of the endpoint that a refused body was probably meant for; null if none is clearly better. Clearly better: its schema accepts the
 * body, and knows more of the body's fields than the schema that refused it. Endpoints of the same family come first, because the caller's
 * client belongs to it.
 */
export function lookAlike (checks: Checks, refusing: Endpoint, body: Readonly<Record<string, unknown>>): string | null {
  // Counts the schema's fields, which are few: a body may have a million.
  const known = (id: string): number => (checks.get(id)?.fields ?? []).filter((field) => Object.hasOwn(body, field)).length
  const floor = known(refusing.id)
  const others = endpoints.filter(({ id }) => known(id) > floor && checks.get(id)?.errorsOf(body).length === 0)
  const [best] = others.sort((a, b) => distance(refusing, a) - distance(refusing, b))
  return best === undefined ? null : addressOf(best)
}

function distance (from: Endpoint, to: Endpoint): number {
  return from.family === to.family ? 0 : 1
}

function addressOf ({ family, tail, action }: Endpoint): string {
  const path = ['', family.prefix, ...tail].join('/').replace(/:(\w+)$/, '{$1}')
  return action === null ? path : `${path}:${action}`
}
