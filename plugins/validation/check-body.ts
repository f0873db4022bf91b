import type { IncomingHttpHeaders } from 'node:http'
import type { ErrorObject } from 'ajv'
import type { Endpoint } from '../protocols/types.js'
import type { ModelCall } from '../core/model-call.js'
import { otherModels } from '../core/other-models.js'
import { explain } from './explain.js'
import { readForm } from './form.js'
import { isObject, readJson } from './json.js'
import { lookAlike } from './likeness.js'
import { readMediaType } from './media-type.js'
import type { Rules } from './options.js'
import { Rejection, reject } from './rejection.js'
import type { Checks } from './schemas.js'

/**
 * Checks a whole body and sets what it says on the request: the parsed JSON, the model, whether a stream is asked for.
 * Null where the body may pass. The bytes are only read.
 */
export function checkBody (llm: ModelCall, headers: IncomingHttpHeaders, bytes: Buffer, rules: Rules): Rejection | null {
  const type = readMediaType(llm.endpoint, headers)
  if (type instanceof Rejection) return type
  return type.kind === 'json' ? checkJson(llm, bytes, rules) : checkForm(llm, bytes, type.boundary)
}

function checkJson (llm: ModelCall, bytes: Buffer, { checks, maxDepth }: Rules): Rejection | null {
  const { endpoint } = llm
  const read = readJson(bytes, maxDepth)
  if (read instanceof Rejection) return read
  const { json } = read
  const [error] = checks.get(endpoint.id)?.errorsOf(json) ?? []
  if (error !== undefined) return schemaRejection(endpoint, json, error, checks)
  llm.json = json
  llm.otherModels = otherModels(json, endpoint.otherModels, endpoint.family.modelPrefix)
  if (isObject(json)) setWishes(llm, endpoint.modelField === null ? null : json[endpoint.modelField], json.stream === true)
  return null
}

function checkForm (llm: ModelCall, bytes: Buffer, boundary: string): Rejection | null {
  const modelField = String(llm.endpoint.modelField)
  const fields = readForm(bytes, boundary, [modelField, 'stream'])
  if (fields instanceof Rejection) return fields
  setWishes(llm, fields.get(modelField), fields.get('stream') === 'true')
  return null
}

/** What the path says stands where the body has no say in it. */
function setWishes (llm: ModelCall, model: unknown, stream: boolean): void {
  if (typeof model === 'string' && model !== '') llm.model = model
  if (llm.endpoint.streams === 'body') llm.stream = stream
}

function schemaRejection (endpoint: Endpoint, json: unknown, error: ErrorObject, checks: Checks): Rejection {
  const { param, reason } = explain(error)
  const meant = isObject(json) ? lookAlike(checks, endpoint, json) : null
  const hint = meant === null ? '' : ` This looks like a body for POST ${meant}.`
  return reject(error.keyword, 'invalid_body', { reason: reason + hint }, { param })
}
