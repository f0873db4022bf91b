/** Decisions that need no store: what a known key of a known group may do. Each returns the refusal, or null for yes. */
import { clipped } from '../core/errors/clipped.js'
import { gatewayError, type GatewayError } from '../core/errors/gateway-error.js'
import { modelHeaders, type Endpoint, type Family } from '../protocols/index.js'
import type { ModelCall } from '../core/call/model-call.js'
import { mayBeReadAs, parametersOf, queryOf } from '../core/url/query.js'
import type { Group, Key } from '../core/types.js'

/** 401 for a key that is no longer valid. `nowMs` is the time since the epoch. */
export function checkKey (key: Key, nowMs: number): GatewayError | null {
  if (key.disabled) return gatewayError('disabled_api_key')
  // A host's own store may have something else than a number, which no comparison is true of.
  if (key.expiresAt !== null && !(key.expiresAt > nowMs)) return gatewayError('expired_api_key')
  return null
}

/** 403 if the group no longer exists, or does not allow the endpoint's protocol to third-party calls. */
export function checkProtocol (group: Group | undefined, endpoint: Endpoint): GatewayError | null {
  if (group === undefined) return gatewayError('access_denied')
  if (group.thirdParty && endpoint.allowedBy.some((protocol) => group.protocols.has(protocol))) return null
  const allowed = group.thirdParty && group.protocols.size > 0 ? [...group.protocols].join(', ') : 'no protocol here'
  return gatewayError('protocol_not_allowed', { protocol: endpoint.protocol, allowed })
}

const isModel = mayBeReadAs(['model'])

/**
 * 403 if the group allows only some models and this is none of them; 400 if the request names no model. 403 also for another model in the
 * query than in the body: LiteLLM, and servers that read forms in Go and Java, prefer it.
 */
export function checkModel (
  { auth: { group }, model, body: { otherModels }, endpoint: { modelField }, url }: ModelCall, headers: Readonly<Record<string, unknown>>
): GatewayError | null {
  const query = modelField === null || model === null ? '' : queryOf(url)
  const elsewhere = query === '' ? undefined : parametersOf(query, isModel).find(([, name]) => name !== model)?.[1]
  if (elsewhere !== undefined) return gatewayError('model_not_allowed', { model: clipped(elsewhere) }, { param: modelField })
  const models = group?.models ?? null
  if (models === null) return null
  const inHeaders = Object.keys(headers).filter((name) => modelHeaders.includes(name.replaceAll('_', '-')))
  const named = [...model === null ? [] : [model], ...otherModels, ...inHeaders.map((name) => String(headers[name]))]
  const refused = named.find((name) => !models.has(name))
  if (refused !== undefined) return gatewayError('model_not_allowed', { model: clipped(refused) }, { param: modelField })
  return model === null && modelField !== null ? gatewayError('model_required', {}, { param: modelField }) : null
}

/** 400 if the family's version header is missing or has a value that is not accepted. */
export function checkVersion (
  { versionHeader }: Family, headers: Readonly<Record<string, unknown>>, accepted: readonly string[] | undefined
): GatewayError | null {
  if (versionHeader === null) return null
  const { name } = versionHeader
  const list = accepted ?? versionHeader.accepted
  const given = headers[name]
  if (typeof given === 'string' && list.includes(given)) return null
  const code = given === undefined || given === '' ? 'missing_version' : 'unsupported_version'
  return gatewayError(code, { header: name, accepted: list.join(', ') })
}
