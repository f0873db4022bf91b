import type { ErrorObject } from 'ajv'
import type { Endpoint } from '../protocols/index.js'
import type { ModelCall } from '../core/call/model-call.js'
import type { Span } from '../core/body/json-text.js'
import { clipped } from '../core/errors/clipped.js'
import { explain } from './explain.js'
import { readForm } from './form.js'
import { isObject } from '../core/body/json-object.js'
import { readJson } from './json.js'
import { lookAlike } from './likeness.js'
import type { MediaType } from './media-type.js'
import { BodyRefusal, refused } from './body-refusal.js'
import { hasAny, otherModels } from './other-models.js'
import { hasDuplicates, type Bounds } from './scan.js'
import { mayBeReadAs, parametersOf, queryOf } from '../core/url/query.js'
import { otherSpelling, type OtherSpelling } from './spelling.js'
import type { Checks } from './schemas.js'

/** The rules that bodies are checked against. */
export interface BodyRules extends Bounds {
  readonly checks: Checks
}

/** What is read from a valid body. */
export interface Findings {
  /** For a form, only the number of answers that it asks for. */
  readonly json: unknown
  /** Null if it names none. */
  readonly model: string | null
  /** Position of the model's name in a form. */
  readonly modelAt?: Span
  /** Positions of the model's name in a JSON body, if they were asked for. */
  readonly modelPlaces?: readonly Span[]
  /** Other models that the body names. */
  readonly otherModels: readonly string[]
  /** Those of the other models that may take the model's place. */
  readonly substitutes: readonly string[]
  readonly stream: boolean
}

const none: readonly string[] = []
const mostModels = 1_000
/** Longer than any provider's model name. Names are cached, some thousand at a time, and the short beginning of one keeps all of it. */
const longestName = 4_096
/** A part of a form takes as long to read as so many values of JSON. */
const valuesOfPart = 8

/** Checks a whole body, and does not change the bytes. */
export function checkBody (endpoint: Endpoint, type: MediaType, bytes: Buffer, rules: BodyRules): Findings | BodyRefusal {
  if (type.kind === 'json') return checkJson(endpoint, bytes, rules)
  return checkForm(endpoint, bytes, type.boundary, Math.ceil(rules.maxValues / valuesOfPart))
}

function checkJson (endpoint: Endpoint, bytes: Buffer, rules: BodyRules): Findings | BodyRefusal {
  const read = readJson(bytes, rules)
  if (read instanceof BodyRefusal) return read
  const { json } = read
  const { checks } = rules
  const lax = isObject(json) ? otherSpelling(json, endpoint) : null
  if (lax !== null) return ambiguous(lax)
  const [error] = checks.get(endpoint.id)?.errorsOf(json) ?? []
  if (error !== undefined) return schemaRefusal(endpoint, json, error, checks)
  const named = otherModels(json, endpoint.otherModels, endpoint.family.modelPrefix)
  const { modelsWithin } = endpoint
  const within = modelsWithin !== null && hasAny(json, modelsWithin.places) ? modelsWithin.models : null
  // Of two equal keys, some readers take the first one.
  if ((named !== null || within !== null) && hasDuplicates(bytes, json)) {
    return refused('duplicate_key', 'invalid_json', { reason: 'an object in it has a key twice' })
  }
  const others = [...new Set([...named ?? none, ...otherModels(json, within ?? none, endpoint.family.modelPrefix) ?? none])]
  if (others.length > mostModels) {
    return refused('models', 'invalid_body', { reason: `The request body names more than ${mostModels} models.` })
  }
  if (others.some(({ length }) => length > longestName)) return tooLong(null)
  const substitutes = others.length === 0 ? none : [...new Set(otherModels(json, endpoint.substitutes, endpoint.family.modelPrefix))]
  if (!isObject(json)) return { json, model: null, otherModels: others, substitutes, stream: false }
  const { modelField } = endpoint
  const model = nameOf(modelField === null ? null : json[modelField])
  if (model !== null && model.length > longestName) return tooLong(modelField)
  return { json, model, otherModels: others, substitutes, stream: json['stream'] === true }
}

function tooLong (modelField: string | null): BodyRefusal {
  return refused('models', 'invalid_body', { reason: `The name of a model is longer than ${longestName} characters.` }, modelField)
}

function ambiguous ({ key, field }: OtherSpelling): BodyRefusal {
  const word = clipped(key)
  const reason = `The key ${JSON.stringify(word)} could be read as "${field}": spell it so.`
  return refused('duplicate_key', 'invalid_body', { reason }, word)
}

/**
 * Servers in Go and Java prefer a field of the query to the form's; one that is read here may stand in the form only. A model in the query
 * must be the form's (../auth/access.ts).
 */
export function checkQuery ({ endpoint, url }: ModelCall): BodyRefusal | null {
  const query = queryOf(url)
  if (query === '') return null
  const { counts, others } = formFieldsOf(endpoint)
  const isRead = mayBeReadAs(['stream', ...counts, ...others].map((name) => name.replace(/\W.*/, '').toLowerCase()))
  const [name] = parametersOf(query, isRead)[0] ?? []
  if (name === undefined) return null
  return refused('form', 'invalid_body', { reason: `The field ${clipped(name)} must be in the form, not in the query.` })
}

function formFieldsOf ({ output, otherModels: others }: Endpoint): Readonly<Record<'counts' | 'others', string[]>> {
  return { counts: output?.choices.flat() ?? [], others: others.flatMap(fieldOf) }
}

function checkForm (endpoint: Endpoint, bytes: Buffer, boundary: string, maxParts: number): Findings | BodyRefusal {
  const modelField = String(endpoint.modelField)
  const { counts, others } = formFieldsOf(endpoint)
  const fields = readForm(bytes, boundary, [modelField, 'stream', ...counts, ...others], maxParts)
  if (fields instanceof BodyRefusal) return fields
  const textOf = ([start, end]: Span = [0, 0]): string => bytes.toString('utf8', start, end)
  const modelAt = fields.get(modelField)
  // A text may hold a list, as aggregators read it: such a text is not an allowed name.
  const named = (names: readonly string[]): string[] => names.filter((name) => fields.has(name)).map((name) => textOf(fields.get(name)))
  return {
    json: Object.fromEntries(counts.filter((name) => fields.has(name)).map((name) => [name, countIn(textOf(fields.get(name)))])),
    model: nameOf(textOf(modelAt)),
    ...modelAt && { modelAt },
    otherModels: named(others),
    substitutes: named(endpoint.substitutes.flatMap(fieldOf)),
    stream: textOf(fields.get('stream')) === 'true',
  }
}

/** How a form writes a path into an object: `svg[model]`. None for a path into a list. */
function fieldOf (path: string): string[] {
  const [first = '', ...rest] = path.split('.')
  return rest.includes('*') ? [] : [first + rest.map((key) => `[${key}]`).join('')]
}

/** Value of a field that a lax server may read as a number; null for none. */
function countIn (text: string): number | null {
  const count = Number(text)
  return Number.isInteger(count) && count > 0 ? count : null
}

function nameOf (model: unknown): string | null {
  return typeof model === 'string' && model !== '' ? model : null
}

function schemaRefusal (endpoint: Endpoint, json: unknown, error: ErrorObject, checks: Checks): BodyRefusal {
  const { param, reason } = explain(error)
  const meant = isObject(json) ? lookAlike(checks, endpoint, json) : null
  const hint = meant === null ? '' : ` This looks like a body for POST ${meant}.`
  return refused(error.keyword, 'invalid_body', { reason: reason + hint }, param === null ? null : clipped(param))
}
