import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type * as ajv from 'ajv/dist/2020.js'
import type { Ajv2020, ErrorObject, ValidateFunction } from 'ajv/dist/2020.js'
import { OptionError } from '../core/config/options.js'
import { endpoints, schemaNames } from '../protocols/index.js'
import { isObject } from '../core/body/json-object.js'
import { readPlainFileNow } from '../core/config/plain-file.js'
import { repeatedName } from '../core/body/repeated-name.js'

/** A compiled schema, and its top-level fields, by which a body sent to the wrong endpoint is recognised. */
export interface Check {
  /** The first error, or none. Never changes the value. */
  readonly errorsOf: (json: unknown) => readonly ErrorObject[]
  readonly fields: readonly string[]
}

/** By endpoint id. */
export type Checks = ReadonlyMap<string, Check | undefined>

/** A schema, or the path of its file. */
export type SchemaSource = string | Readonly<Record<string, unknown>>

const none: readonly never[] = []

const require = createRequire(import.meta.url)

/** Resolved once: resolving each file through the package's exports took longer than reading it. */
const schemaFolder = join(dirname(require.resolve('fastify-llm-gateway/package.json')), 'schemas')

// With a validator that changes what it checks, the checked body and the forwarded bytes could differ.
const settings = {
  strict: true,
  allowUnionTypes: true,
  coerceTypes: false,
  useDefaults: false,
  removeAdditional: false,
  allErrors: false,
  verbose: true,
  code: { optimize: false },
} as const

/** The compiler is loaded with the first schema that is compiled: it would be a quarter of every start. */
function newCompiler (more: Readonly<Record<string, boolean>> = {}): Ajv2020 {
  const { Ajv2020: Compiler }: typeof ajv = require('ajv/dist/2020.js')
  return new Compiler({ ...settings, ...more })
}

const checked = endpoints.flatMap(({ id, schema }) => schema === null ? [] : [{ id, schema }])

/**
 * The schema of every endpoint whose body is checked. `given` replaces one by the name of its schema, or for a single endpoint by its id;
 * it is compiled here, so that a broken one fails the start. Those of this package are compiled once, when first used: a test checks each
 * against the meta-schema and the compiler, and all of them would take 40 ms of every start. Throws `LLM_GATEWAY_OPTION` for a name that is
 * no endpoint's, and for a schema that cannot be read or compiled.
 */
export function readSchemas (given: Readonly<Record<string, SchemaSource>>): Checks {
  const replaced = new Map(Object.entries(given).map(([name, source]) => [name, compileGiven(name, source)]))
  let shared: Ajv2020 | null = null
  const compiler = (): Ajv2020 => {
    shared ??= newCompiler({ meta: false, validateSchema: false })
    return shared
  }
  const names = new Set<string>(schemaNames)
  const bundled = new Map([...names].map((name) => [name, makeCheck(compiler, readSchema(bundledPath(name)))]))
  const found = checked.map(({ id, schema }) => [id, replaced.get(id) ?? replaced.get(schema) ?? bundled.get(schema)] as const)
  return new Map(found)
}

/** Path of the schema of that name, in the source tree and in the built package alike. */
export function bundledPath (name: string): string {
  return join(schemaFolder, `${name}.request.json`)
}

/** Schemas by name; those in files are read. */
export function readSources (given: Readonly<Record<string, SchemaSource>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(given).map(([name, source]) => [name, typeof source === 'string' ? readSchema(source) : source]))
}

function compileGiven (name: string, source: SchemaSource): Check {
  const option = `validation.schemas.${name}`
  const place = checked.find(({ id, schema }) => name === id || name === schema)
  if (place === undefined) throw new OptionError(option, 'is no endpoint whose body is checked')
  try {
    // A validator of its own, because a schema copied from ours has the same $id.
    const check = makeCheck(newCompiler, typeof source === 'string' ? readGiven(source) : source)
    check.errorsOf({})
    // A schema that names few fields must not make its endpoint's bodies look like those of another.
    return { ...check, fields: [...new Set([...check.fields, ...propertiesOf(readSchema(bundledPath(place.schema)))])] }
  } catch (error) {
    throw new OptionError(option, `cannot be used: ${String(error)}`)
  }
}

function readSchema (path: string): unknown {
  return JSON.parse(readPlainFileNow(path))
}

function readGiven (path: string): unknown {
  const text = readPlainFileNow(path)
  const schema: unknown = JSON.parse(text)
  const repeated = repeatedName(text)
  if (repeated !== null) throw new TypeError(`${path}:${repeated.line}: ${repeated.path.join('.')}: the same name stands twice`)
  return schema
}

function makeCheck (compiler: () => Ajv2020, schema: unknown): Check {
  if (!isObject(schema)) throw new TypeError('it is not a JSON object')
  let validate: ValidateFunction | null = null
  const errorsOf: Check['errorsOf'] = (json) => {
    validate ??= compiler().compile(schema)
    validate(json)
    return validate.errors ?? none
  }
  return { errorsOf, fields: propertiesOf(schema) }
}

function propertiesOf (schema: unknown): readonly string[] {
  return Object.keys(Object(Reflect.get(Object(schema), 'properties')))
}
