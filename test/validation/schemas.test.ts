import { readdirSync, readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import t from 'tap'
import { GatewayError } from '../../plugins/core/errors/gateway-error.js'
import { endpoints, type Endpoint } from '../../plugins/protocols/index.js'
import { ModelCall } from '../../plugins/core/call/model-call.js'
import { Checker } from '../../plugins/validation/checker.js'
import { isObject } from '../../plugins/core/body/json-object.js'
import { readOptions, type Rules } from '../../plugins/validation/options.js'
import { BodyRefusal } from '../../plugins/validation/body-refusal.js'
import { bundledPath } from '../../plugins/validation/schemas.js'

const fixtures = new URL('../fixtures/requests/', import.meta.url)
const headers = { 'content-type': 'application/json' }
const rules = readOptions({})
const closing = [
  'additionalProperties', 'unevaluatedProperties', 'maxItems', 'maxLength', 'maxProperties', 'const', 'format', 'uniqueItems', 'default',
]
const names = new Set(endpoints.flatMap(({ schema }) => schema ?? []))

function endpointOf (schema: string): Endpoint {
  const endpoint = endpoints.find((candidate) => candidate.schema === schema)
  if (endpoint === undefined) throw new Error(`no endpoint has the schema ${schema}`)
  return endpoint
}

function requestTo (endpoint: Endpoint): ModelCall {
  return new ModelCall({ kind: 'endpoint', endpoint, url: '/', mountLength: 0, model: null, keys: null, repair: null })
}

function checkBody (call: ModelCall, sent: typeof headers, bytes: Buffer, held: Rules): BodyRefusal | null {
  const verdict = new Checker(held, () => {}).check(call, sent, bytes)
  if (verdict instanceof Promise) throw new Error('a small body is checked at once')
  return verdict
}

function check (schema: string, bytes: string | Buffer, held: Rules = rules): BodyRefusal | null {
  return checkBody(requestTo(endpointOf(schema)), headers, Buffer.from(bytes), held)
}

function readBundled (name: string): unknown {
  return JSON.parse(readFileSync(bundledPath(name), 'utf8'))
}

function * within (value: unknown, path: string): Generator<[path: string, schema: Readonly<Record<string, unknown>>]> {
  if (isObject(value)) yield [path, value]
  const inner = isObject(value) || Array.isArray(value) ? Object.entries(value) : []
  for (const [key, child] of inner) yield * within(child, `${path}/${key}`)
}

t.test('every schema is a plain floor that says where it comes from', async (t) => {
  const ajv = new Ajv2020({ strict: true, allowUnionTypes: true })
  for (const name of names) {
    const schema = readBundled(name)
    t.ok(ajv.compile(isObject(schema) ? schema : {}), `${name} is a valid 2020-12 schema`)
    t.match(schema, {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      $id: `urn:fastify-llm-gateway:${name}.request`,
      title: /\w/,
      description: /^Body of POST \//,
      $comment: /^Source: https:\/\//,
    }, name)
    for (const [path, part] of within(schema, name)) {
      if (!path.endsWith('/properties')) t.strictSame(closing.filter((keyword) => keyword in part), [], `${path} closes nothing`)
      if ('pattern' in part) t.match(path, /\/properties\/size$/, `${path} is the only place for a pattern`)
      if ('enum' in part) t.match(path, /\/if\//, `${path} only chooses`)
    }
  }
})

t.test('bodies that real clients send pass, with fields that nobody knows yet', async (t) => {
  for (const name of names) {
    const files = readdirSync(new URL(`${name}/`, fixtures))
    t.not(files.length, 0, `${name} has fixtures`)
    for (const file of files) {
      const bytes = readFileSync(new URL(`${name}/${file}`, fixtures))
      t.equal(check(name, bytes), null, `${name}/${file}`)
      const more = { ...JSON.parse(bytes.toString()), brand_new: { a: [1] }, another: null }
      t.equal(check(name, JSON.stringify(more)), null, `${name}/${file} with more fields`)
    }
  }
})

t.test('a schema check changes nothing', async (t) => {
  const body = { model: 'm', n: 1, messages: [{ role: 'user', content: '5', extra: true }], more: { a: '1' } }
  const llm = requestTo(endpointOf('chat-completions'))
  t.equal(checkBody(llm, headers, Buffer.from(JSON.stringify(body)), rules), null)
  t.strictSame(llm.body.json, body)
})

t.test('each refusal names the field and what is wrong with it', async (t) => {
  const refused: unknown = JSON.parse(readFileSync(new URL('refused.json', fixtures), 'utf8'))
  if (!Array.isArray(refused)) throw new Error('refused.json is a list')
  for (const { schema, body, param, message } of refused) {
    const bytes = JSON.stringify(body)
    const rejection = check(schema, bytes)
    const { error } = rejection ?? {}
    t.match(error, { code: 'invalid_body', statusCode: 400, param, message }, `${schema} ${bytes}`)
    t.ok(error instanceof GatewayError)
  }
})

t.test('every required field of the service is demanded', async (t) => {
  const required: Record<string, string[]> = {
    'chat-completions': ['model', 'messages'],
    responses: ['model', 'input'],
    images: ['prompt'],
    messages: ['model', 'max_tokens', 'messages'],
    'generate-content': ['contents'],
  }
  for (const [name, fields] of Object.entries(required)) {
    const whole: Record<string, unknown> = JSON.parse(readFileSync(new URL(`${name}/smallest.json`, fixtures), 'utf8'))
    for (const field of fields) {
      const { [field]: _, ...rest } = whole
      t.match(check(name, JSON.stringify(rest)), { keyword: 'required', error: { param: field } }, `${name} without ${field}`)
    }
  }
})

t.test('a given schema replaces one, by schema name or for a single endpoint', async (t) => {
  const own = { type: 'object', required: ['team'], properties: { team: { type: 'string' } } }
  const byName = readOptions({ schemas: { 'generate-content': own } })
  t.match(check('generate-content', '{}', byName), { error: { param: 'team' } })
  t.match(check('chat-completions', '{}', byName), { error: { param: 'model' } }, 'others stay')

  const byId = readOptions({ schemas: { 'generate_content.streamGenerateContent': own, 'generate-content': { type: 'object' } } })
  t.equal(check('generate-content', '{}', byId), null)
  const [streamed] = endpoints.filter(({ id }) => id === 'generate_content.streamGenerateContent')
  if (streamed === undefined) throw new Error('endpoint is gone')
  t.match(checkBody(requestTo(streamed), headers, Buffer.from('{}'), byId), { error: { param: 'team' } })
})

t.test('a given schema may be a file, even a copy of ours', async (t) => {
  const dir = t.testdir({
    'strict.json': JSON.stringify({
      ...Object(readBundled('chat-completions')),
      required: ['model', 'messages', 'user'],
      properties: { model: true, messages: true, user: true },
    }),
  })
  const held = readOptions({ schemas: { 'chat-completions': `${dir}/strict.json`, responses: `${dir}/strict.json` } })
  t.match(check('chat-completions', '{"model":"m","messages":[]}', held), { keyword: 'required', error: { param: 'user' } })
})

t.test('each keyword of a given schema is told in words', async (t) => {
  const cases: Array<[schema: Record<string, unknown>, body: string, keyword: string, param: string | null, message: string]> = [
    [{ properties: { a: { type: 'string', minLength: 3 } } }, '{"a":"x"}', 'minLength', 'a', 'a must have at least 3 characters.'],
    [{ properties: { a: { type: 'array', minItems: 2 } } }, '{"a":[1]}', 'minItems', 'a', 'a must have at least 2 items.'],
    [{ properties: { a: true }, additionalProperties: false }, '{"b":1}', 'additionalProperties', 'b', 'b is not known.'],
    [{ properties: { a: true }, unevaluatedProperties: false }, '{"b":1}', 'unevaluatedProperties', 'b', 'b is not known.'],
    [{ properties: { a: { type: 'string', pattern: '^x$' } } }, '{"a":"y"}', 'pattern', 'a', 'a must match pattern "^x$".'],
    [{ properties: { a: { enum: ['x', 'y'] } } }, '{"a":"z"}', 'enum', 'a', 'a must be equal to one of the allowed values.'],
    [
      { properties: { a: { type: 'object', properties: { 'x/y~z': { type: 'null' } } } } },
      '{"a":{"x/y~z":1}}',
      'type',
      'a.x/y~z',
      'a.x/y~z must be null.',
    ],
    [{ minProperties: 1 }, '{}', 'minProperties', null, 'The request body must NOT have fewer than 1 properties.'],
  ]
  for (const [schema, body, keyword, param, message] of cases) {
    const held = readOptions({ schemas: { embeddings: { type: 'object', ...schema } } })
    t.match(check('embeddings', body, held), { keyword, error: { param, message } }, message)
  }
})

t.test('an endpoint without a schema takes any JSON', async (t) => {
  const held: Rules = { ...rules, here: { ...rules.here, checks: new Map() } }
  const llm = requestTo(endpointOf('chat-completions'))
  t.equal(checkBody(llm, headers, Buffer.from('[1]'), held), null)
  t.strictSame(llm.body.json, [1])
  t.equal(llm.model, null)
})

t.test('the model and the wish for a stream are read from the body, or from the path', async (t) => {
  const chat = requestTo(endpointOf('chat-completions'))
  checkBody(chat, headers, Buffer.from('{"model":"vendor/m","stream":true,"messages":[{"role":"user","content":""}]}'), rules)
  t.match(chat, { model: 'vendor/m', stream: true })

  const template = requestTo(endpointOf('responses'))
  checkBody(template, headers, Buffer.from('{"prompt":{"id":"p"},"stream":false}'), rules)
  t.match(template, { model: null, stream: false })

  const [streamed] = endpoints.filter(({ id }) => id === 'generate_content.streamGenerateContent')
  if (streamed === undefined) throw new Error('endpoint is gone')
  const path = new ModelCall({ kind: 'endpoint', endpoint: streamed, url: '/', mountLength: 0, model: 'g', keys: null, repair: null })
  checkBody(path, headers, Buffer.from('{"model":"other","stream":false,"contents":[{"parts":[]}]}'), rules)
  t.match(path, { model: 'g', stream: true }, 'the path decides')
})

t.test('a body that a schema of the operator refuses is not taken for one of another endpoint', async (t) => {
  const held = readOptions({ schemas: { 'chat-completions': { type: 'object', properties: { user: {} }, required: ['user'] } } })
  t.match(check('chat-completions', '{"model":"m","messages":[]}', held)?.facts.values, { reason: /^user is required\.$/ })
  t.match(check('chat-completions', '{"model":"m","input":"x"}', held)?.facts.values, { reason: /looks like a body for POST \/v1\/responses\.$/ })
})

t.test('a wrong option fails the start and is named', async (t) => {
  const dir = t.testdir({ 'list.json': '[]', 'broken.json': '{', 'twice.json': '{"properties":{"a":{},\n"a":{}}}' })
  const cases: Array<[options: object, message: RegExp]> = [
    [{ nonsense: 1 }, /validation\.nonsense is not known/],
    [{ maxBodyBytes: 0 }, /validation\.maxBodyBytes must be/],
    [{ maxDepth: 1.5 }, /validation\.maxDepth must be/],
    [{ maxBodyBytesByEndpoint: [] }, /validation\.maxBodyBytesByEndpoint must be an object/],
    [{ maxBodyBytesByEndpoint: { nonsense: 1 } }, /validation\.maxBodyBytesByEndpoint\.nonsense is not known/],
    [{ maxBodyBytesByEndpoint: { messages: -1 } }, /validation\.maxBodyBytesByEndpoint\.messages must be/],
    [{ schemas: 'x' }, /validation\.schemas must be an object/],
    [{ schemas: { nonsense: {} } }, /validation\.schemas\.nonsense is no endpoint whose body is checked/],
    [{ schemas: { 'responses.cancel': {} } }, /validation\.schemas\.responses\.cancel is no endpoint whose body is checked/],
    [{ schemas: { messages: `${dir}/missing.json` } }, /validation\.schemas\.messages cannot be used: .*ENOENT/],
    [{ schemas: { messages: `${dir}/broken.json` } }, /validation\.schemas\.messages cannot be used: SyntaxError/],
    [{ schemas: { messages: `${dir}/list.json` } }, /validation\.schemas\.messages cannot be used: .*not a JSON object/],
    [{ schemas: { messages: `${dir}/twice.json` } }, /schemas\.messages cannot be used: .*twice\.json:2: properties\.a: the same name/],
    [{ schemas: { messages: { type: 'nonsense' } } }, /validation\.schemas\.messages cannot be used/],
    [{ schemas: { messages: { type: 'object', nonsense: true } } }, /validation\.schemas\.messages cannot be used: .*unknown keyword/],
  ]
  for (const [options, message] of cases) t.throws(() => readOptions(options), { code: 'LLM_GATEWAY_OPTION', message }, String(message))
})
