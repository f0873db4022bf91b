/** Parsed YAML -> a configuration of the right form, or every place where the form is wrong. */
import { createRequire } from 'node:module'
import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js'
import { pointerKeys } from '../core/json-object.js'
import { ConfigError, joinPath, type Problem } from './config-error.js'
import type { GatewayConfig } from './config-types.js'

const require = createRequire(import.meta.url)
const schema: object = require('fastify-llm-gateway/schemas/gateway.schema.json')
const prices: object = require('fastify-llm-gateway/schemas/prices.schema.json')

// All errors at once: the file is the operator's own, and a list saves rounds.
const ajv = new Ajv2020({ strict: true, strictRequired: false, allowUnionTypes: true, allErrors: true, verbose: true })
ajv.addSchema(prices)
const validate = ajv.compile<GatewayConfig>(schema)

/** Throws ConfigError. */
export function checkForm (value: unknown): GatewayConfig {
  if (validate(value)) return value
  throw new ConfigError(validate.errors?.flatMap(problemOf))
}

interface Description {
  /** The last part of the path where the error itself stands one level up. */
  readonly part?: unknown
  readonly message: string
}

type Describe = (params: Readonly<Record<string, unknown>>, error: ErrorObject) => Description

/** Keywords whose own words say too little. Null: another error says the same better. */
const descriptions: Readonly<Record<string, Describe | null>> = {
  additionalProperties: (params) => ({ part: params['additionalProperty'], message: 'is not known' }),
  required: (params) => ({ part: params['missingProperty'], message: 'is required' }),
  // Which it is now tells apart 8080 and "8080", and that a variable is always text.
  type: (params, error) => ({ message: `must be ${String(params['type'])}, not ${typeOf(error.data)}` }),
  enum: (params) => ({ message: `must be one of ${String(params['allowedValues'])}` }),
  pattern: (_, error) => ({ message: `is not valid: ${String(error.parentSchema?.['description'])}` }),
  not: (_, error) => ({ message: String(error.parentSchema?.['description']) }),
  if: null,
  propertyNames: null,
}

function problemOf (error: ErrorObject): Problem[] {
  const describe = descriptions[error.keyword]
  if (describe === null) return []
  const { part = error.propertyName, message } = describe?.(error.params, error) ?? { message: String(error.message) }
  const path = placeAt(error.instancePath)
  return [{ path: part === undefined ? path : joinPath(path, String(part)), message }]
}

function typeOf (value: unknown): string {
  if (Array.isArray(value)) return 'array'
  return value === null ? 'null' : typeof value
}

/** `/keys/0/limits` -> `keys[0].limits`. */
function placeAt (pointer: string): string {
  return pointerKeys(pointer).reduce((path, key) => joinPath(path, /^\d+$/.test(key) ? Number(key) : key), '')
}
