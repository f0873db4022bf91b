import { endpoints, modelLists, routePattern } from '../protocols/index.js'
import type { Endpoint } from '../protocols/index.js'

interface RouteAddress {
  readonly method: Endpoint['method']
  /** As find-my-way reads it. */
  readonly url: string
}

/** Every route that the endpoints need, each once. `prefix` has no slash at its end. */
export function routeAddresses (prefix: string): readonly RouteAddress[] {
  const lists = Object.values(modelLists).flatMap(({ list, retrieve }) => [...list, ...retrieve])
  const addresses = new Map<string, RouteAddress>()
  for (const endpoint of [...endpoints, ...lists]) {
    const { method } = endpoint
    const url = prefix + routePattern(endpoint)
    addresses.set(`${method} ${url}`, { method, url })
  }
  return [...addresses.values()]
}
