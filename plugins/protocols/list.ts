import { chatCompletions } from './chat-completions/endpoint.js'
import { embeddings } from './embeddings/endpoint.js'
import { generateContent } from './generate-content/endpoint.js'
import { images } from './images/endpoint.js'
import { messages } from './messages/endpoint.js'
import { responses } from './responses/endpoint.js'
import type { Family } from './types.js'

/** Every protocol. A new one is a folder beside this file and a line in this list, a schema and its fixtures. */
export const protocols = [chatCompletions, responses, images, embeddings, messages, generateContent] as const

// Lists of names: so the declarations of the package contain these names, and not the content of all protocols.
export const protocolNames = protocols.map(({ name }) => name)
export const endpointIds = protocols.flatMap(({ endpoints }) => endpoints.map(({ id }) => id))
export const schemaNames = protocols.flatMap(({ endpoints }) => endpoints.flatMap(({ schema }) => schema ?? []))

/** What a group may be allowed to use. */
export type ProtocolName = typeof protocolNames[number]

/** Name of an endpoint in options about single endpoints: `messages.count_tokens`. */
export type EndpointId = typeof endpointIds[number]

/** A schema of this package, by its file in `schemas/` without the extension. */
export type SchemaName = typeof schemaNames[number]

/** A label for metrics and logs: a protocol, or what belongs to a whole family: its model list, and WebSocket upgrades. */
export type ProtocolLabel = ProtocolName | 'models' | 'sockets'

export function protocolsOf (family: Family): readonly ProtocolName[] {
  return protocols.filter((protocol) => protocol.family === family).map(({ name }) => name)
}
