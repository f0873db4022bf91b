import type { Endpoint } from '../protocols/index.js'
import { folded } from '../core/body/folded.js'
import type { JsonObject } from '../core/body/json-object.js'

export interface OtherSpelling {
  readonly key: string
  /** The field that it may be taken for. */
  readonly field: string
}

/**
 * The first key of a body that some servers take for a field which decides something here, but that is spelled differently, such as `Model`
 * beside `model`: otherwise a caller could have one model checked and another one served. Null for none.
 */
export function otherSpelling (json: JsonObject, endpoint: Endpoint): OtherSpelling | null {
  const fields = fieldsOf(endpoint)
  for (const key in json) {
    // Nearly all keys are plain and need no folding.
    const field = fields.get(/[^a-z0-9_]/.test(key) ? folded(key) : key)
    if (field !== undefined && field !== key) return { key, field }
  }
  return null
}

const known = new WeakMap<Endpoint, ReadonlyMap<string, string>>()

/** By their folded names. Computed once for each endpoint. */
function fieldsOf (endpoint: Endpoint): ReadonlyMap<string, string> {
  const before = known.get(endpoint)
  if (before !== undefined) return before
  const { modelField, otherModels, modelsWithin, boundIdField, output, usage } = endpoint
  const paths = [
    modelField ?? [], boundIdField ?? [], 'stream', usage?.request?.field ?? [],
    [...otherModels, ...modelsWithin?.places ?? []].map((path) => path.split('.', 1)),
    output?.max.map(([first]) => first) ?? [], output?.choices.map(([first]) => first) ?? [], output?.goesOn ?? [],
    // A budget holds the price at which these ask to be served.
    usage === null ? [] : [usage.served.tier, usage.served.speed, usage.served.region].map(({ asked }) => asked),
  ]
  const names = paths.flat(2).map(String)
  const fields = new Map(names.map((name) => [folded(name), name]))
  known.set(endpoint, fields)
  return fields
}
