import { defineEndpoint } from '../endpoint.js'
import { byFamily } from '../families.js'
import { protocolsOf } from '../list.js'

/** One address of three families, distinguished by headers: see `familyOf`. */
export const modelLists = byFamily((family) => {
  const shared = { protocol: 'models', family, operation: 'models', allowedBy: protocolsOf(family) } as const
  return {
    list: [defineEndpoint(shared, { id: `models.${family.name}`, path: 'models', method: 'GET', body: 'none' })],
    retrieve: [defineEndpoint(shared, { id: `models.${family.name}.retrieve`, path: 'models/:model', method: 'GET', body: 'none' })],
  }
})
