import { createRequire } from 'node:module'
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import t from 'tap'
import { schemaCheck, type Schema } from '../../plugins/standalone/schema-check.js'

const require = createRequire(import.meta.url)
const gateway: Schema = require('fastify-llm-gateway/schemas/gateway.schema.json')
const prices: Schema = require('fastify-llm-gateway/schemas/prices.schema.json')
const schemas = { 'gateway.schema.json': gateway, 'prices.schema.json': prices }

// With the meta-schema and in strict mode, which a start does without.
const ajv = new Ajv2020({ strict: true, strictRequired: false, allowUnionTypes: true })
for (const schema of [gateway, prices]) ajv.addSchema(schema)

const texts = [
  '', ' ', 'a', 'a b', 'A,b=', 'ä', '😀', 'x'.repeat(200), '.a', '/', '/a', '/a/', 'auto', 'automatic', 'USD', 'usd', '*', 'https://app.example',
  'https://app.example/', 'redis://store:6379', 'rediss://', 'postgres://store/usage', 'postgresql:', '_schema', '2027-01-01',
  '2027-01-01T00:00:00Z', '2027-01-01T00:00+01:00', '2027-1-1', `sha256:${'a'.repeat(64)}`, `sha256:${'A'.repeat(64)}`, 'constructor',
]
const numbers = [0, 1, -1, 0.5, 2, 50, 256, 402, 1e4, 1e9, 1e17, 2 ** 53, Infinity, NaN]
const others = [null, true, false, [], {}, [[]], ['a', 'a'], { a: null }, { file: '/a' }, Object.fromEntries([['__proto__', 1]])]
const names = ['main', 'name', '', 'a b', '__proto__', 'toString', 'x'.repeat(65)]

/** One out of some. */
type Pick = <T>(...some: readonly T[]) => T

function pickerOf (seed: number): Pick {
  let state = seed
  return (...some) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    const [picked] = some.slice(Math.floor(state / 2 ** 32 * some.length))
    if (picked === undefined) throw new RangeError('there is nothing to pick from')
    return picked
  }
}

function isOneOf (many: number, pick: Pick): boolean {
  return pick(...Array(many).keys()) === 0
}

/** A value that mostly follows the schema. */
function sample (schema: Partial<Schema>, document: Schema, pick: Pick): unknown {
  if (isOneOf(40, pick)) return pick<unknown>(...texts, ...numbers, ...others)
  const { $ref, type, enum: listed, const: only, pattern, properties, additionalProperties: more, items, ...rest } = schema
  if ($ref !== undefined) return ofReference($ref, document, pick)
  if (listed !== undefined) return pick(...listed)
  if (only !== undefined) return only
  const kind = pick(...[type ?? 'object'].flat())
  if (kind === 'string') return pick(...texts.filter((text) => pattern === undefined || new RegExp(pattern, 'u').test(text)), 'a')
  if (kind === 'boolean') return pick(true, false)
  if (kind === 'array') {
    const item = items ?? rest.then?.items ?? {}
    return Array.from({ length: pick(1, 0, 2, (rest.maxItems ?? 1) + 1) }, () => sample(item, document, pick))
  }
  if (kind !== 'object') return pick(...numbers.filter((each) => each >= (rest.minimum ?? 0) && each <= (rest.maximum ?? Infinity)))
  if (rest.else?.$ref !== undefined) return ofReference(rest.else.$ref, document, pick)
  const share = schema === document ? 8 : pick(1, 3)
  const fields = Object.entries(properties ?? {}).filter(([name]) => rest.required?.includes(name) || isOneOf(share, pick))
  const count = typeof more === 'object' ? pick(1, 2, (rest.maxProperties ?? 1) + 1) : 0
  const named = Array.from({ length: count }, (_, at) => [pick('name', pick(...names)) + at, Object(more)] as const)
  const spare = isOneOf(20, pick) ? [['spare', {}] as const] : []
  return Object.fromEntries([...fields, ...named, ...spare].map(([name, inner]) => [name, sample(inner, document, pick)]))
}

function ofReference (reference: string, document: Schema, pick: Pick): unknown {
  const [file, name = ''] = reference.split('#/$defs/')
  const target = file === '' ? document : prices
  return sample(target.$defs[name] ?? {}, target, pick)
}

t.test('a schema says the same of every value as it stands and compiled', async (t) => {
  const said = { right: 0, wrong: 0 }
  for (const [id, schema] of Object.entries(schemas)) {
    t.equal(ajv.validateSchema(schema), true, id)
    const places = ['', ...Object.keys(schema.$defs).map((name) => `/$defs/${name}`)]
    for (const place of places) {
      const name = place.replace('/$defs/', '')
      const follows = schemaCheck(name === '' ? schema : Object({ $ref: `${id}#/$defs/${name}` }), schemas)
      const validate = ajv.getSchema(`${id}#${place}`)
      fc.assert(fc.property(fc.nat(), (seed) => {
        const value = sample(schema.$defs[name] ?? schema, schema, pickerOf(seed))
        const isRight = follows(value)
        said[isRight ? 'right' : 'wrong'] += 1
        return isRight === validate?.(value)
      }), { numRuns: name === '' ? 600 : 60 })
    }
  }
  t.comment(JSON.stringify(said))
  t.ok(said.right > 100 && said.wrong > 100, 'many of both')
})

/** Each keyword alone, and those that go together. */
const small: ReadonlyArray<Readonly<Record<string, unknown>>> = [
  ...['object', 'array', 'string', 'number', 'integer', 'boolean', ['object', 'boolean']].map((type) => ({ type })),
  { enum: ['a', 1, true] }, { const: true }, { not: {} }, { not: { type: 'string' } },
  { minimum: 1 }, { maximum: 2 }, { exclusiveMinimum: 0 }, { minLength: 2 }, { pattern: '^.$' },
  { minItems: 1 }, { maxItems: 1 }, { items: { type: 'array' } }, { uniqueItems: true },
  { minProperties: 1 }, { maxProperties: 0 }, { required: ['a'] }, { required: ['file'] }, { propertyNames: { pattern: '^a$' } },
  { properties: { a: { type: 'string' } } }, { properties: { file: { minLength: 3 } }, additionalProperties: false },
  { additionalProperties: { type: 'string' } }, { if: { type: 'string' }, then: { minLength: 1 }, else: { type: 'number' } },
  { if: { type: 'string' }, then: { minLength: 1 } }, { $ref: '#/$defs/a', $defs: { a: { type: 'string' } }, minLength: 1 },
  { $schema: 'https://json-schema.org/draft/2020-12/schema', $id: 'small', title: '', description: '', default: 1 },
]

t.test('each keyword says the same as it stands and compiled', async (t) => {
  for (const schema of small) {
    const validate = new Ajv2020({ strict: false, strictNumbers: true }).compile(schema)
    const values = [...texts, ...numbers, ...others]
    const follows = schemaCheck(Object(schema))
    t.same(values.filter((value) => follows(value)), values.filter((value) => validate(value)), schema)
  }
})

t.test('a schema with more in it than there are rules for is no schema of ours', async (t) => {
  const { $defs } = gateway
  t.throws(() => schemaCheck(Object({ $defs, multipleOf: 2 }))(2), { message: 'there is no rule for multipleOf' })
  for (const $ref of ['#/$defs/none', 'none.json#/$defs/name']) {
    t.throws(() => schemaCheck(Object({ $defs, $ref }))(2), { message: `nothing is at ${$ref}` })
  }
})
