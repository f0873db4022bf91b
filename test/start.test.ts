/** What the start of an app does not load: each of these would be a good part of the time that the plugins add to it. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'

const root = new URL('../', import.meta.url).pathname

/** What a script loads, outside the test runner's loader and on what was built. */
async function loadedBy (script: string): Promise<string[]> {
  const all = `${script}
    import { createRequire } from 'node:module'
    console.log(JSON.stringify(Object.keys(createRequire(import.meta.url).cache)))
    process.exit()`
  const { stdout } = await promisify(execFile)('/usr/bin/env', ['-i', process.execPath, '--input-type=module', '-e', all], { cwd: root })
  return JSON.parse(stdout)
}

t.test('packages that nothing needs yet', async (t) => {
  const loaded = await loadedBy(`
    import Fastify from 'fastify'
    import llmGateway from 'fastify-llm-gateway'
    const app = Fastify()
    await app.register(llmGateway, { upstreams: { a: { url: 'http://127.0.0.1:9' } }, groups: { a: { protocols: ['messages'] } } })
    await app.ready()
    const { UpstreamAgent } = await import('${root}dist/plugins/forward/forward.js')
    if (typeof UpstreamAgent.prototype.request !== 'function') throw new TypeError('mounts have no request')`)
  t.ok(loaded.some((file) => file.includes('/node_modules/undici/')), 'it sees what is loaded')
  for (const name of [
    '@opentelemetry/api/', 'ajv/dist/2020.js', 'prom-client/', 'yaml/', 'uplot/', 'ioredis/', 'lmdb/', '@fastify/reply-from/',
    'undici/lib/web/',
  ]) {
    t.same(loaded.filter((file) => file.includes(`/node_modules/${name}`)), [], name)
  }
})

t.test('compilers of schemas, in the process that serves a file in which nothing is wrong', async (t) => {
  const loaded = await loadedBy(`
    import { Standalone } from '${root}dist/plugins/standalone/standalone.js'
    const env = { PORT: '0', HOST: '127.0.0.1' }
    await Standalone.start({ file: 'examples/demo/gateway.yaml', env, logStream: { write () {} } })`)
  t.ok(loaded.some((file) => file.includes('/node_modules/fastify/')), 'it sees what is loaded')
  for (const name of ['ajv/', '@fastify/ajv-compiler/', '@fastify/fast-json-stringify-compiler/']) {
    t.same(loaded.filter((file) => file.includes(`/node_modules/${name}`)), [], name)
  }
})
