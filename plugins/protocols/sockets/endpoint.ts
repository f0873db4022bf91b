import { defineEndpoint } from '../endpoint.js'
import { byFamily } from '../families.js'
import { protocolsOf } from '../list.js'

/** The endpoint of upgrades: they need a key like any other request, and are sent nowhere. It has no address of its own. */
export const sockets = byFamily((family) => {
  const shared = { protocol: 'sockets', family, operation: 'sockets', allowedBy: protocolsOf(family) } as const
  return defineEndpoint(shared, { id: `sockets.${family.name}`, path: 'sockets', method: 'GET', body: 'none' })
})
