import type { Endpoint, Family, ProtocolLabel, ProtocolName } from './types.js'

type Given = Pick<Endpoint, 'id'> & { readonly path: string } & Partial<Omit<Endpoint, 'id' | 'tail' | 'family'>>

interface Shared {
  readonly protocol: ProtocolLabel
  readonly family: Family
  readonly operation: string
  readonly allowedBy: readonly ProtocolName[]
}

/**
 * Where a router finds an endpoint, below a mount prefix: all that follows the first variable part is a wildcard. A model
 * may hold `/` and `:`, and routers bound the length of a named parameter (Fastify: 100 characters), which ids exceed.
 */
export function routePattern ({ family, tail }: Pick<Endpoint, 'family' | 'tail'>): string {
  return `/${family.prefix}/${tail.join('/').replace(/:.*$/s, '*')}`
}

/**
 * Completes the endpoints of one protocol: what they share, then the plain case (POST of JSON that names its model,
 * neither streamed nor metered), then what each says of itself. `path` is the tail as it is written in documents.
 */
export function defineEndpoints (shared: Shared, given: readonly Given[]): readonly Endpoint[] {
  return given.map((own) => defineEndpoint(shared, own))
}

export function defineEndpoint (shared: Shared, { path, ...own }: Given): Endpoint {
  return {
    ...shared,
    method: 'POST',
    tail: path.split('/'),
    action: null,
    body: 'json',
    schema: null,
    metered: 'no',
    streams: 'never',
    modelField: null,
    otherModels: [],
    usage: null,
    output: null,
    ...own,
  }
}
