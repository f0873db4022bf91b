import type { Endpoint } from '../protocols/index.js'
import { folded } from '../core/body/folded.js'
import { isObject, type JsonObject } from '../core/body/json-object.js'

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
  for (const [place, fields] of fieldsOf(endpoint)) {
    const inner = place === '' ? json : json[place]
    const found = isObject(inner) ? otherIn(inner, fields) : null
    if (found !== null) return found
  }
  return null
}

function otherIn (json: JsonObject, fields: ReadonlyMap<string, string>): OtherSpelling | null {
  for (const key in json) {
    // Nearly all keys are plain and need no folding.
    const field = fields.get(/[^a-z0-9_]/.test(key) ? folded(key) : key)
    if (field !== undefined && field !== key) return { key, field }
  }
  return null
}

type Fields = ReadonlyMap<string, Map<string, string>>

const known = new WeakMap<Endpoint, Fields>()

/** By their folded names, below the field that has them; at first those of the body itself. Computed once for each endpoint. */
function fieldsOf (endpoint: Endpoint): Fields {
  const before = known.get(endpoint)
  if (before !== undefined) return before
  const { modelField, otherModels, modelsWithin, boundIdField, output } = endpoint
  const names = [
    modelField ?? [], boundIdField ?? [], 'stream', output?.tools === undefined ? [] : 'tools',
    [...otherModels, ...modelsWithin?.places ?? []].map((path) => path.split('.', 1)), estimatedBy(endpoint).map(([first]) => first),
  ]
  const fields = new Map([['', new Map(names.flat(2).map((name) => [folded(String(name)), String(name)]))]])
  for (const [place = '', name] of [...output?.max ?? [], ...output?.choices ?? []]) {
    if (name !== undefined) fields.set(place, (fields.get(place) ?? new Map<string, string>()).set(folded(name), name))
  }
  known.set(endpoint, fields)
  return fields
}

/** Paths of the fields, besides a list of tools, by which usage is asked for and the most that a request may cost is estimated. */
export function estimatedBy ({ output, usage }: Endpoint): ReadonlyArray<readonly string[]> {
  const { request = null, served = null } = usage ?? {}
  return [
    ...output?.max ?? [],
    ...output?.choices ?? [],
    ...output?.goesOn === undefined ? [] : [output.goesOn],
    ...output?.tools?.flatMap(({ most, fields = [] }) => [...fields, ...most === null ? [] : [most]].map((field) => [field])) ?? [],
    ...request === null ? [] : [[request.field, request.flag]],
    ...served === null ? [] : [served.tier, served.speed, served.region].flatMap(({ asked }) => asked.map((field) => [field])),
  ]
}
