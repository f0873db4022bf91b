import { endpoints, modelLists } from '../protocols/index.js'
import type { Endpoint } from '../protocols/index.js'

export interface RouteAddress {
  readonly method: Endpoint['method']
  /** As find-my-way reads it; a model in the path is a wildcard, because it may hold `/` and `:`. */
  readonly url: string
}

/** Every route that the endpoints need, each once. `prefix` has no slash at its end. */
export function routeAddresses (prefix: string): readonly RouteAddress[] {
  const lists = Object.values(modelLists).flatMap(({ list, retrieve }) => [...list, ...retrieve])
  const addresses = new Map<string, RouteAddress>()
  for (const { method, family, tail } of [...endpoints, ...lists]) {
    const url = `${prefix}/${family.prefix}/${tail.join('/').replace(':model', '*')}`
    addresses.set(`${method} ${url}`, { method, url })
  }
  return [...addresses.values()]
}
