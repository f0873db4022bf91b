/** Every protocol and endpoint that the gateway knows. */
import { families } from './families.js'
import { anthropic } from './family-anthropic.js'
import { gemini } from './family-gemini.js'
import { openai } from './family-openai.js'
import { protocols, type ProtocolLabel, type ProtocolName } from './list.js'
import type { EndpointOf, Family } from './types.js'

export type * from './types.js'
export { routePattern } from './endpoint.js'
export { families } from './families.js'
export {
  endpointIds, protocolNames, protocols, schemaNames, type EndpointId, type ProtocolLabel, type ProtocolName, type SchemaName,
} from './list.js'
export { besideVersions } from './beside-versions.js'
export {
  credentialHeaders, frontHeaders, gatewayChoices, gatewayHeaders, modelHeaders, payerHeaders, signInHeaders,
} from './header-names.js'
export { modelLists } from './models/endpoint.js'
export { sockets } from './sockets/endpoint.js'
export { usageHiding } from './usage-hiding.js'

export type Endpoint = EndpointOf<ProtocolLabel, ProtocolName>

/** All endpoints except the model lists, which are distinguished by headers. */
export const endpoints: readonly Endpoint[] = protocols.flatMap<Endpoint>((protocol) => protocol.endpoints)

/** Where a JSON body names its model: paths such as `requests.*.model`. If the URL names the model, the body may repeat it. */
export function modelPaths ({ modelField, otherModels }: Endpoint): readonly string[] {
  return modelField === null ? otherModels : [modelField]
}

/** The parts of a request that identify the family of an address which several families share. */
export interface Caller {
  readonly headers: Readonly<Record<string, unknown>>
  /** Including its `?`, or empty. */
  readonly query: string
  /** The version segments of the raw path, in order. */
  readonly versions: readonly string[]
}

/**
 * The family by headers and query, for the model list and for paths of no endpoint (docs/clients.md). If no header identifies it, a version
 * that only one family uses does.
 */
export function familyOf ({ headers, query = '', versions = [] }: Pick<Caller, 'headers'> & Partial<Caller>): Family {
  if (headers['anthropic-version'] !== undefined) return anthropic
  if (headers['x-goog-api-key'] !== undefined || /[?&]key=/.test(query)) return gemini
  if (headers.authorization !== undefined) return openai
  if (versions.includes('v1beta')) return gemini
  // Such a caller is told of its version header, and not to send another family's key.
  return headers['x-api-key'] === undefined ? openai : anthropic
}

/** The version header of requests of a family, with the first value that is accepted; empty for a family without one. */
export function versionHeader ({ versionHeader: header }: Family): Readonly<Record<string, string>> {
  return header === null ? {} : { [header.name]: String(header.accepted[0]) }
}

/** Query parameters that may carry a secret in any family, as in `Family.queryCarriers`. */
export const credentialParameters: readonly string[] = Object.values(families).flatMap(({ queryCarriers }) => queryCarriers)
