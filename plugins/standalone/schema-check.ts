/**
 * Whether a value follows a JSON Schema, without compiling it: compiling that of the configuration took a third of every start. There is a
 * rule for each keyword that our schemas use, and only the parts that values have are read. What is wrong with a value is told by a
 * compiled schema.
 */
import { isObject } from '../core/body/json-object.js'

/** Each field is read by the rule of its own keyword only, and so only where the schema has it. */
export interface Schema {
  readonly $ref: string
  readonly $defs: Readonly<Record<string, Schema>>
  readonly type: Type | readonly Type[]
  readonly enum: readonly unknown[]
  readonly const: unknown
  readonly not: Schema
  readonly if: Schema
  readonly then: Schema
  readonly else?: Schema
  readonly minimum: number
  readonly maximum: number
  readonly exclusiveMinimum: number
  readonly minLength: number
  readonly pattern: string
  readonly minItems: number
  readonly maxItems: number
  readonly items: Schema
  readonly minProperties: number
  readonly maxProperties: number
  readonly required: readonly string[]
  readonly propertyNames: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties: false | Schema
}

/** By their `$id`. */
type Schemas = Readonly<Record<string, Schema>>

/** Where references are looked up. */
interface Place {
  readonly root: Schema
  readonly others: Schemas
}

export type Check<T = unknown> = (value: T) => boolean
type Rule<T = unknown> = (schema: Schema, place: Place) => Check<T>

/** The rule accepts values of other types. */
function of<T> (isOf: (value: unknown) => value is T, rule: Rule<T>): Rule {
  return (schema, place) => {
    const check = rule(schema, place)
    return (value) => !isOf(value) || check(value)
  }
}

function isNumber (value: unknown): value is number {
  return Number.isFinite(value)
}

function isText (value: unknown): value is string {
  return typeof value === 'string'
}

function isList (value: unknown): value is readonly unknown[] {
  return Array.isArray(value)
}

const types = {
  object: isObject,
  array: isList,
  string: isText,
  number: isNumber,
  integer: Number.isInteger,
  boolean: (value) => typeof value === 'boolean',
} satisfies Record<string, Check>

type Type = keyof typeof types

const always: Check = () => true

/** Keywords that refuse nothing; `if` reads those that go with it. */
const silent = ['$schema', '$id', '$defs', 'title', 'description', 'default', 'then', 'else']

const rules: Readonly<Record<string, Rule>> = {
  $ref: ({ $ref }, { root, others }) => {
    const [file, name = ''] = $ref.split('#/$defs/')
    const document = file ? others[file] : root
    const found = document?.$defs[name]
    if (document === undefined || found === undefined) throw new TypeError(`nothing is at ${$ref}`)
    return checkOf(found, { root: document, others })
  },
  type: ({ type }) => {
    const named = [type].flat().map((name): Check => types[name])
    return (value) => named.some((isOf) => isOf(value))
  },
  enum: (schema) => (value) => schema.enum.includes(value),
  const: (schema) => (value) => schema.const === value,
  not: ({ not }, place) => {
    const check = checkOf(not, place)
    return (value) => !check(value)
  },
  if: (schema, place) => {
    const [condition, yes] = [checkOf(schema.if, place), checkOf(schema.then, place)]
    const no = schema.else === undefined ? always : checkOf(schema.else, place)
    return (value) => condition(value) ? yes(value) : no(value)
  },
  minimum: of(isNumber, ({ minimum }) => (value) => value >= minimum),
  maximum: of(isNumber, ({ maximum }) => (value) => value <= maximum),
  exclusiveMinimum: of(isNumber, ({ exclusiveMinimum }) => (value) => value > exclusiveMinimum),
  minLength: of(isText, ({ minLength }) => (value) => [...value].length >= minLength),
  pattern: of(isText, ({ pattern }) => {
    const expression = new RegExp(pattern, 'u')
    return (value) => expression.test(value)
  }),
  minItems: of(isList, ({ minItems }) => (value) => value.length >= minItems),
  maxItems: of(isList, ({ maxItems }) => (value) => value.length <= maxItems),
  // Lists that must be unique in our files contain only texts.
  uniqueItems: of(isList, () => (value) => new Set(value).size === value.length),
  items: of(isList, ({ items }, place) => {
    const check = checkOf(items, place)
    return (value) => value.every(check)
  }),
  minProperties: of(isObject, ({ minProperties }) => (value) => Object.keys(value).length >= minProperties),
  maxProperties: of(isObject, ({ maxProperties }) => (value) => Object.keys(value).length <= maxProperties),
  required: of(isObject, ({ required }) => (value) => required.every((name) => Object.hasOwn(value, name))),
  propertyNames: of(isObject, ({ propertyNames }, place) => {
    const check = checkOf(propertyNames, place)
    return (value) => Object.keys(value).every(check)
  }),
  properties: of(isObject, ({ properties = {} }, place) => {
    const checks = Object.entries(properties).map(([name, inner]) => [name, checkOf(inner, place)] as const)
    return (value) => checks.every(([name, check]) => !Object.hasOwn(value, name) || check(value[name]))
  }),
  additionalProperties: of(isObject, ({ properties = {}, additionalProperties: inner }, place) => {
    const check = inner === false ? () => false : checkOf(inner, place)
    return (value) => Object.keys(value).every((name) => Object.hasOwn(properties, name) || check(value[name]))
  }),
}

/** Reads a schema when the first value is checked: most parts of a file's schema never are needed. */
function checkOf (schema: Schema, place: Place): Check {
  let checks: readonly Check[] | null = null
  return (value) => {
    checks ??= Object.keys(schema).filter((keyword) => !silent.includes(keyword)).map((keyword) => {
      const rule = rules[keyword]
      if (rule === undefined) throw new TypeError(`there is no rule for ${keyword}`)
      return rule(schema, place)
    })
    return checks.every((check) => check(value))
  }
}

/**
 * Returns a check whether a value follows a schema, which may refer to others. The check throws TypeError for a keyword without a rule, and
 * for a reference that leads nowhere.
 */
export function schemaCheck (schema: Schema, others: Schemas = {}): Check {
  return checkOf(schema, { root: schema, others })
}
