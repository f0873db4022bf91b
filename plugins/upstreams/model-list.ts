import { gatewayError, type GatewayError } from '../core/errors/gateway-error.js'
import type { ModelCall } from '../core/call/model-call.js'
import type { Group } from '../core/types.js'
import { modelDocuments } from '../protocols/model-documents.js'
import type { Router } from './router.js'

/** The models of a group, if its configuration lists them by name; null if only the provider knows them. */
function listedModels ({ models, routes = [], upstream }: Group): readonly string[] | null {
  if (models !== null) return [...models]
  const named = routes.flatMap((route) => route.models)
  return named.length === 0 || upstream !== null || named.some((name) => name.includes('*')) ? null : [...new Set(named)]
}

/** The answer to a request for the list of models, or for one of them; null if its provider is to be asked. */
export function modelsAnswer (llm: ModelCall, router: Router): object | GatewayError | null {
  const { auth: { group }, endpoint, model } = llm
  if (endpoint.protocol !== 'models' || group === null) return null
  const listed = listedModels(group)?.filter((name) => router.takes(group, name, llm))
  if (listed === undefined) return null
  const documents = modelDocuments[endpoint.family.name]
  if (model === null) return documents.list(listed)
  return listed.includes(model) ? documents.one(model) : gatewayError('model_not_found')
}
