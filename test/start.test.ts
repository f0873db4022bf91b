/** What the start of an app does not load: each of these would be a good part of the time that the plugins add to it. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'

const root = new URL('../', import.meta.url).pathname

// Outside the test runner's loader, on what was built.
const script = `
import Fastify from 'fastify'
import { createRequire } from 'node:module'
import llmGateway from 'fastify-llm-gateway'
const app = Fastify()
await app.register(llmGateway, { upstreams: { a: { url: 'http://127.0.0.1:9' } }, groups: { a: { protocols: ['messages'] } } })
await app.ready()
console.log(JSON.stringify(Object.keys(createRequire(import.meta.url).cache)))
`

t.test('packages that nothing needs yet', async (t) => {
  const { stdout } = await promisify(execFile)('/usr/bin/env', ['-i', process.execPath, '--input-type=module', '-e', script], { cwd: root })
  const loaded: string[] = JSON.parse(stdout)
  t.ok(loaded.some((file) => file.includes('/node_modules/undici/')), 'it sees what is loaded')
  for (const name of [
    '@opentelemetry/api/', 'ajv/dist/2020.js', 'prom-client/', 'yaml/', 'uplot/', 'ioredis/', 'lmdb/', '@fastify/reply-from/',
  ]) {
    t.same(loaded.filter((file) => file.includes(`/node_modules/${name}`)), [], name)
  }
})
