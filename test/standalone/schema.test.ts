/** What editors make of `gateway.yaml` while it is written. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { Ajv2020 } from 'ajv/dist/2020.js'
import t from 'tap'
import { parse } from 'yaml'
import { demoFile, parseConfig } from '../../plugins/standalone/config.js'

type Schema = Readonly<Record<string, unknown>>

const schemaFile = createRequire(import.meta.url).resolve('fastify-llm-gateway/schemas/gateway.schema.json')

function read (file: string): Schema {
  return JSON.parse(readFileSync(file, 'utf8'))
}

/** Fields whose hover would be empty. Alternatives (`if`, `then`, `else`) only say more of fields that stand elsewhere. */
function undescribed (schema: Schema, definitions: Schema, path: string): string[] {
  const { properties, items, additionalProperties, $defs } = schema
  const fields = Object.entries<Schema>(Object(properties)).flatMap(([name, field]) => {
    const ref = String(field['$ref'])
    const described = field['description'] ?? Object(definitions[ref.replace(
      '#/$defs/', ''
    )])['description'] ?? ref.startsWith('prices.schema.json#')
    return [...described ? [] : [`${path}.${name}`], ...undescribed(field, definitions, `${path}.${name}`)]
  })
  const inner = [items, additionalProperties].filter((each) => typeof each === 'object').flatMap((each) => undescribed(
    Object(each), definitions, `${path}[]`
  ))
  return [...fields, ...inner, ...Object.entries<Schema>(Object($defs)).flatMap(([name, each]) => undescribed(each, definitions, name))]
}

t.test('every field says what it is', async (t) => {
  for (const name of ['gateway', 'prices']) {
    const schema = read(schemaFile.replace('gateway', name))
    t.same(undescribed(schema, Object(schema['$defs']), name), [])
  }
})

t.test('the schema is found with all that it refers to by the place of its file, as editors do, and nowhere else', async (t) => {
  const asked: string[] = []
  const ajv = new Ajv2020({
    strict: false,
    loadSchema: async (uri) => {
      asked.push(uri)
      return read(new URL(uri).pathname)
    },
  })
  const { $id, ...schema } = read(schemaFile)
  t.equal($id, 'gateway.schema.json', 'an address of its own would be asked for in the net')
  const validate = await ajv.compileAsync({ ...schema, $id: new URL(String($id), pathToFileURL(schemaFile)).href })
  t.same(asked, [new URL('prices.schema.json', pathToFileURL(schemaFile)).href])
  t.ok(validate(parse(readFileSync(demoFile, 'utf8'))))
})

t.test('a file may name its schema', async (t) => {
  const config = parseConfig(
    `$schema: ./node_modules/fastify-llm-gateway/schemas/gateway.schema.json\n${readFileSync(demoFile, 'utf8')}`, {}
  )
  t.match(config.$schema, /gateway\.schema\.json$/)
})

t.test('an editor finds no mistake in the examples, whose variables stand there as they are', async (t) => {
  const ajv = new Ajv2020({ strict: false, schemas: [read(schemaFile.replace('gateway', 'prices'))] })
  const validate = ajv.compile(read(schemaFile))
  for (const name of ['cluster', 'demo', 'docker/config', 'providers', 'systemd']) {
    t.ok(validate(parse(readFileSync(new URL(`../../examples/${name}/gateway.yaml`, import.meta.url), 'utf8'))), name)
  }
  t.notOk(validate({ upstreams: {}, groups: {}, keys: [{ id: 'a', group: 'b', hash: 'sha256:$NAME' }] }))
})
