import type { ErrorObject } from 'ajv'
import { pointerKeys } from '../core/body/json-object.js'
import { clipped } from '../core/errors/clipped.js'

/** Which field of a body is wrong, such as `messages[0].role`, and why, in words. */
interface Explanation {
  readonly param: string | null
  readonly reason: string
}

/** Parameters in which a failing keyword names a field below the place where it failed. */
const fieldParams = ['missingProperty', 'additionalProperty', 'unevaluatedProperty'] as const

/** Words that follow the field's name, by failing keyword. Other keywords keep the validator's words. */
const words: Readonly<Record<string, (params: Record<string, unknown>) => string>> = {
  required: () => 'is required',
  type: ({ type }) => `must be ${typesInWords(type)}`,
  minLength: ({ limit }) => limit === 1 ? 'must not be empty' : `must have at least ${String(limit)} characters`,
  minItems: ({ limit }) => limit === 1 ? 'must not be empty' : `must have at least ${String(limit)} items`,
  additionalProperties: () => 'is not known',
  unevaluatedProperties: () => 'is not known',
}

/** Describes one schema error to the caller: path and problem, never the value. */
export function explain (error: ErrorObject): Explanation {
  const { keyword, instancePath, params, message, parentSchema } = error
  const param = paramAt(instancePath, fieldParams.map((name) => params[name]).find((name) => name !== undefined))
  const problem = keyword === 'pattern' && typeof parentSchema?.description === 'string'
    ? `must be ${parentSchema.description}`
    : words[keyword]?.(params) ?? String(message)
  return { param, reason: `${param === null ? 'The request body' : clipped(param)} ${problem}.` }
}

/** A JSON pointer (RFC 6901), and maybe a field below it, as a dotted path; null for the whole body. */
function paramAt (pointer: string, field: unknown): string | null {
  const keys = pointerKeys(pointer)
  if (field !== undefined) keys.push(String(field))
  const path = keys.map((key) => /^\d+$/.test(key) ? `[${key}]` : `.${key}`).join('')
  return path === '' ? null : path.replace(/^\./, '')
}

const named: Readonly<Record<string, string>> = {
  string: 'a string',
  array: 'an array',
  object: 'an object',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'a boolean',
}

function typesInWords (type: unknown): string {
  const types = [type].flat().map(String).map((name) => named[name] ?? name)
  return types.join(', ').replace(/, ([^,]*)$/, ' or $1')
}
