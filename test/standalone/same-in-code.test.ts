/** What `gateway.yaml` may not say, the options in code may not either: one list of mistakes for both. */
import { createRequire } from 'node:module'
import Fastify from 'fastify'
import t from 'tap'
import { stringify } from 'yaml'
import llmGateway, { consolePage, metrics, type LlmGatewayOptions } from '../../plugins/index.js'
import { openState } from '../../plugins/state/index.js'
import { bundleOptions } from '../../plugins/standalone/bundle-options.js'
import { parseConfig } from '../../plugins/standalone/config.js'

type Schema = Record<string, unknown>

const require = createRequire(import.meta.url)
const files: Readonly<Record<string, Schema>> = {
  '': require('fastify-llm-gateway/schemas/gateway.schema.json'),
  'prices.schema.json': require('fastify-llm-gateway/schemas/prices.schema.json'),
}

/** Every section with something in it, so that one value at a time can be wrong. */
const right = {
  upstreams: { main: { url: 'http://127.0.0.1:9', credential: 'x' } },
  pools: { two: { members: [{ upstream: 'main' }] } },
  groups: {
    all: {
      protocols: ['chat_completions'],
      upstream: 'main',
      routes: [{ models: ['a*'], upstream: 'main' }],
      limits: { budgets: [{ tokens: 5, period: 'day' }] },
    },
  },
  keys: [{ id: 'a', group: 'all', secret: 's' }],
  console: { path: '/console', listen: { port: 0 } },
  cors: { origins: ['*'] },
  state: { engine: 'memory' },
  prices: { models: { m: { input: 1 } } },
  log: { level: 'silent' },
}

/** Read by the process itself, not by a plugin. */
const processOnly = ['listen', 'log', 'cors']

/** What code may say and the file may not: a host's own ids have any form, and code puts a prefix together that may be empty. */
const hosts = ['keys.0.id = "\u00e9 \\u0000"', 'prefix = ""']

interface Leaf {
  readonly path: readonly string[]
  readonly schema: Schema
}

function * leavesOf (given: Schema, path: readonly string[], file = ''): Generator<Leaf> {
  const ref = given['$ref']
  if (typeof ref === 'string') {
    const [at = '', pointer = ''] = ref.split('#')
    const found = pointer.split('/').slice(1).reduce<Schema>((schema, part) => Object(schema[part]), files[at === '' ? file : at] ?? {})
    yield * leavesOf({ ...found, ...given, $ref: undefined }, path, at === '' ? file : at)
    return
  }
  yield { path, schema: given }
  for (const [name, schema] of Object.entries<Schema>(Object(given['properties']))) yield * leavesOf(schema, [...path, name], file)
  const [last] = path.slice(-1)
  const names: Record<string, string> = { upstreams: 'main', pools: 'two', groups: 'all' }
  const more = given['additionalProperties']
  if (typeof more === 'object' && more !== null) yield * leavesOf({ ...more }, [...path, names[String(last)] ?? 'any'], file)
  const items = given['items']
  if (typeof items === 'object' && items !== null) yield * leavesOf({ ...items }, [...path, '0'], file)
}

/** One value of another type, and what is just beyond each bound. */
function wrongValues ({ type, minimum, maximum, enum: values, minLength, pattern, exclusiveMinimum, minItems }: Schema): unknown[] {
  const types = [type ?? []].flat()
  const other = [5, 'text', true].find((value) => !types.includes(typeof value) && !(value === 5 && types.includes('integer')))
  return [
    ...types.length > 0 ? [other] : [],
    ...types.includes('integer') ? [1.5] : [],
    ...typeof minimum === 'number' ? [minimum - 1] : [],
    ...typeof maximum === 'number' && maximum < Number.MAX_SAFE_INTEGER ? [maximum + 1] : [],
    ...exclusiveMinimum === 0 ? [0] : [],
    ...minLength === 1 ? [''] : [],
    ...minItems === 1 ? [[]] : [],
    ...values !== undefined ? ['none-of-them'] : [],
    ...pattern !== undefined ? ['\u00e9 \u0000'] : [],
  ]
}

function withValue (base: unknown, path: readonly string[], value: unknown): unknown {
  const [first, ...rest] = path
  if (first === undefined) return value
  if (Array.isArray(base)) return Object.assign([...base], { [first]: withValue(base[Number(first)], rest, value) })
  if (base === undefined && first === '0') return [withValue(undefined, rest, value)]
  return { ...Object(base), [first]: withValue(Object(base)[first], rest, value) }
}

function isRefused (config: unknown): boolean {
  try {
    parseConfig(stringify(config), {})
    return false
  } catch {
    return true
  }
}

/** `section`: the one that is looked at, where it is not of the bundle itself. */
async function isRefusedInCode (config: typeof right, section: string): Promise<boolean> {
  const { console: page, state, ...rest } = config
  const app = Fastify()
  try {
    if (section === 'state') await (await openState(Object(state))).close()
    else if (section === 'console') await app.register(metrics).register(consolePage, Object(page))
    else await app.register(llmGateway, asOptions(rest))
    await app.ready()
    return false
  } catch {
    return true
  } finally {
    await app.close()
  }
}

/** As the process does it, but for what it spreads: a section that is no object would be lost in it. */
function asOptions (config: object): LlmGatewayOptions {
  const noObjects = Object.entries(config).filter(([, value]) => typeof value !== 'object')
  return Object.assign(
    bundleOptions(Object(config), { simulator: null, cells: {}, consolePath: '/c', state: null }), Object.fromEntries(noObjects)
  )
}

t.test('the file that the mistakes are made in is right', async (t) => {
  t.notOk(isRefused(right))
  for (const section of ['', 'state', 'console']) t.notOk(await isRefusedInCode(right, section))
})

t.test('what the file may not say, code may not either', async (t) => {
  const taken: string[] = []
  let count = 0
  for (const { path, schema } of leavesOf(files[''] ?? {}, [])) {
    if (path.length === 0 || processOnly.includes(String(path[0])) || path.includes('simulate')) continue
    for (const value of wrongValues(schema)) {
      const config = Object(withValue(right, path, value))
      if (!isRefused(config)) continue
      count += 1
      if (!await isRefusedInCode(config, String(path[0]))) taken.push(`${path.join('.')} = ${JSON.stringify(value)}`)
    }
  }
  t.ok(count > 200, `${count} mistakes`)
  t.same(taken.filter((mistake) => !hosts.includes(mistake)), [])
})
