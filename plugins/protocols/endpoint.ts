import type { EndpointOf, Family, Protocol, ProtocolExample, TellStreamError } from './types.js'
import type { Simulation } from './simulate-text.js'
import type { TextRules } from './text-rules.js'

/** What an endpoint says of itself. `path` is the tail as it is written in documents. */
export type GivenEndpoint = Pick<EndpointOf, 'id'> & { readonly path: string } & Partial<Omit<EndpointOf, 'id' | 'tail' | 'family' | 'protocol' | 'allowedBy'>>

/** What the endpoints of a protocol share. */
interface Shared<Label extends string, Name extends string> {
  readonly protocol: Label
  readonly family: Family
  readonly operation: string
  readonly allowedBy: readonly Name[]
  readonly text?: TextRules
  readonly boundIdField?: string
  readonly streamError?: TellStreamError
}

interface GivenProtocol<Name extends string> extends Omit<Shared<Name, Name>, 'protocol' | 'allowedBy'> {
  readonly name: Name
  readonly endpoints: readonly GivenEndpoint[]
  readonly example: ProtocolExample
  readonly simulations: Readonly<Record<string, Simulation>>
}

/**
 * Where a router finds an endpoint, below a mount prefix: all that follows the first variable part is a wildcard. A model
 * may hold `/` and `:`, and routers bound the length of a named parameter (Fastify: 100 characters), which ids exceed.
 */
export function routePattern ({ family, tail }: Pick<EndpointOf, 'family' | 'tail'>): string {
  return `/${family.prefix}/${tail.join('/').replace(/:.*$/s, '*')}`
}

export function defineProtocol<const Name extends string> (given: GivenProtocol<Name>): Protocol<Name> {
  const { name, endpoints, example, simulations, ...shared } = given
  return {
    name,
    family: shared.family,
    endpoints: endpoints.map((own) => defineEndpoint({ protocol: name, allowedBy: [name], ...shared }, own)),
    example,
    simulations,
  }
}

/** Completes an endpoint: what its protocol shares, then the plain case (POST of JSON that is neither streamed nor metered), then its own. */
export function defineEndpoint<const Label extends string, const Name extends string> (shared: Shared<Label, Name>, { path, ...own }: GivenEndpoint): EndpointOf<Label, Name> {
  return {
    // Written out: all endpoints then have one shape for V8.
    protocol: shared.protocol,
    family: shared.family,
    operation: shared.operation,
    allowedBy: shared.allowedBy,
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
    replays: null,
    text: shared.text ?? null,
    output: null,
    boundIdField: shared.boundIdField ?? null,
    streamError: shared.streamError ?? shared.family.streamError,
    ...own,
  }
}
