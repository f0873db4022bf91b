/** Finds every place where the form of a parsed YAML file is wrong. */
import { createRequire } from 'node:module'
import type * as ajv from 'ajv/dist/2020.js'
import type { ErrorObject, ValidateFunction } from 'ajv/dist/2020.js'
import { didYouMean } from '../core/config/did-you-mean.js'
import { pointerKeys } from '../core/body/json-object.js'
import { joinPath } from '../core/config/join-path.js'
import type { Problem } from './config-error.js'
import type { GatewayConfig } from './config-types.js'
import { schemaCheck, type Schema } from './schema-check.js'

const require = createRequire(import.meta.url)
const schema: Schema = require('fastify-llm-gateway/schemas/gateway.schema.json')
const prices: Schema = require('fastify-llm-gateway/schemas/prices.schema.json')
const follows = schemaCheck(schema, { 'prices.schema.json': prices })

let compiled: ValidateFunction | null = null

/** Compiled at the first mistake only: it would take a third of every start. A test checks both schemas against the meta-schema. */
function errorsOf (value: unknown): ValidateFunction['errors'] {
  compiled ??= compile()
  compiled(value)
  return compiled.errors
}

function compile (): ValidateFunction {
  const { Ajv2020 }: typeof ajv = require('ajv/dist/2020.js')
  const compiler = new Ajv2020({
    strict: true,
    strictRequired: false,
    allowUnionTypes: true,
    // All errors at once: it is the operator's own file, and a list saves rounds.
    allErrors: true,
    verbose: true,
    // Used so rarely that compiling has to be fast.
    meta: false,
    validateSchema: false,
    code: { optimize: false },
  })
  return compiler.addSchema(prices).compile(schema)
}

/** Where the form of a value is wrong. `filled`: paths whose values must not be shown. */
export function formProblems (value: unknown, filled: ReadonlySet<string>): Problem[] {
  const errors = isConfig(value) ? null : errorsOf(value)
  return (errors ?? []).flatMap((error) => problemOf(error, filled))
}

export function isConfig (value: unknown): value is GatewayConfig {
  return follows(value)
}

interface Description {
  /** The last part of the path, if the error itself is located one level up. */
  readonly part?: unknown
  readonly message: string
}

type Describe = (params: Readonly<Record<string, unknown>>, error: ErrorObject, shown: string | null, isFilled: boolean) => Description

/** No schema of ours requires more. */
const empty: Describe = () => ({ message: 'must not be empty' })
const tooMany: Describe = ({ limit }) => ({ message: `must have no more than ${String(limit)} entries` })

/** Better messages for keywords whose own say too little. Null: another error says the same better. */
const descriptions: Readonly<Record<string, Describe | null>> = {
  additionalProperties: (params, { parentSchema }) => {
    const part = String(params['additionalProperty'])
    return { part, message: `is not known${didYouMean(part, Object.keys(Object(parentSchema?.['properties'])))}` }
  },
  required: (params) => ({ part: params['missingProperty'], message: 'is required' }),
  // The current type distinguishes 8080 from "8080".
  type: (params, error, shown, isFilled) => ({
    message: `must be ${[params['type']].flat().join(' or ')}, not ${typeOf(error.data)}${shown === null ? '' : ` ${shown}`}` +
      (isFilled ? ': what a variable holds is always text' : ''),
  }),
  enum: ({ allowedValues }, { data }, shown) => {
    // A number may be written as text.
    const allowed = [...new Set([allowedValues].flat().map(String))]
    return { message: `must be one of ${allowed.join(', ')}${but(shown)}${shown === null ? '' : didYouMean(String(data), allowed)}` }
  },
  const: ({ allowedValue }, _, shown) => ({ message: `must be ${String(allowedValue)}${but(shown)}` }),
  pattern: (_, error) => ({ message: `is not valid: ${String(error.parentSchema?.['description'])}` }),
  not: (_, { schema, parentSchema }) => ({ message: String(Object(schema)['description'] ?? parentSchema?.['description']) }),
  minLength: empty,
  minItems: empty,
  minProperties: empty,
  maxItems: tooMany,
  maxProperties: tooMany,
  uniqueItems: () => ({ message: 'has an entry twice' }),
  if: null,
  propertyNames: null,
}

function problemOf (error: ErrorObject, filled: ReadonlySet<string>): Problem[] {
  const describe = descriptions[error.keyword]
  if (describe === null) return []
  const at = placeAt(error.instancePath)
  const shown = filled.has(at) ? null : show(error.data, at)
  const { part = error.propertyName, message } = describe?.(
    error.params, error, shown, filled.has(at)
  ) ?? { message: `${String(error.message)}${but(shown)}` }
  return [{ path: part === undefined ? at : joinPath(at, String(part)), message }]
}

function but (shown: string | null): string {
  return shown === null ? '' : `, not ${shown}`
}

/** Fields that may hold a secret, or an address with one. */
const secretFields = /(?:^|\.)(?:secret|hash|credential|url|headers|query|file)(?:\.|$)/

/** A value for messages; null if it may be a secret in the wrong place: those are long, or contain digits. */
function show (value: unknown, path: string): string | null {
  if (secretFields.test(path)) return null
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  return typeof value === 'string' && /^(?:[a-z_-]{1,32}|\d{1,6}[a-z]{0,2})$/i.test(value) ? JSON.stringify(value) : null
}

function typeOf (value: unknown): string {
  if (Array.isArray(value)) return 'array'
  return value === null ? 'null' : typeof value
}

/** `/keys/0/limits` -> `keys[0].limits`. */
function placeAt (pointer: string): string {
  return pointerKeys(pointer).reduce((path, key) => joinPath(path, /^\d+$/.test(key) ? Number(key) : key), '')
}
