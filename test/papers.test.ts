import { execFile, spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import httpProxy from '@fastify/http-proxy'
import Fastify from 'fastify'
import t from 'tap'
import llmGateway, { metrics, proxyOptions, usage } from '../plugins/index.js'
import { parseConfig } from '../plugins/standalone/config.js'
import { freePort } from './helpers/free-port.js'
import { everyProtocol, secret } from './helpers/gateway.js'
import { cleanly } from './helpers/launch.js'
import { startUpstream } from './helpers/upstream.js'
import { generated, pages, partOf, withProtocols, writeTables } from './scripts/tables.js'

if (process.env.UPDATE_TABLES !== undefined) writeTables()
const root = fileURLToPath(new URL('..', import.meta.url))
const papers = pages.map((path) => ({ path, text: readFileSync(`${root}${path}`, 'utf8') }))

function paper (path: string): string {
  const found = papers.find((each) => each.path === path)
  if (found === undefined) throw new Error(`there is no ${path}`)
  return found.text
}

function blocksOf (text: string, language: string): string[] {
  return [...text.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'g'))].map(([, code = '']) => code)
}

function blocks (language: string): string[] {
  return papers.flatMap(({ text }) => blocksOf(text, language))
}

t.test('the tables say what the code says', async (t) => {
  for (const [name, { page, make }] of Object.entries(generated)) t.equal(partOf(paper(page), name), make(), name)
})

t.test('the schema of the configuration file knows every protocol', async (t) => {
  const schema = readFileSync(`${root}schemas/gateway.schema.json`, 'utf8')
  t.equal(schema, withProtocols(schema))
  t.match(schema, `"${everyProtocol.join('", "')}"`)
})

t.test('the README stays a page that is read to its end', async (t) => {
  t.ok(Buffer.byteLength(paper('README.md')) <= 10 * 1024)
})

t.test('no line of prose is longer than the code may be', async (t) => {
  for (const { path, text } of papers) {
    const prose = path === 'docs/api.md' ? '' : text.replace(/```[\s\S]*?```/g, '')
    t.strictSame(prose.split('\n').filter((line) => line.length > 140 && !line.startsWith('|')), [], path)
  }
})

/** The one shell block that begins so. It will be run: an install is never among what is looked for. */
function shellBlock (page: string, start: string): string {
  const [found, ...others] = blocksOf(paper(page), 'sh').filter((block) => block.startsWith(start))
  if (found === undefined || others.length > 0 || found.includes('npm ')) throw new Error(`no single block of ${page} begins with ${start}`)
  return found
}

t.test('the two commands are those of package.json, and the curls answer as the page says', async (t) => {
  const [commands] = blocksOf(paper('README.md'), 'sh')
  const curls = shellBlock('README.md', 'curl http')
  t.match(commands, /^npm ci && npm start .*\nnpm ci && npm test /)
  const port = await freePort()
  const child = spawn(...cleanly(process.execPath, ['dist/bin/llm-gateway.js', 'start'], { PORT: String(port) }), {
    cwd: root, stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => child.kill())
  let printed = ''
  await new Promise<void>((resolve) => child.stdout.on('data', (text) => {
    printed += String(text)
    if (printed.includes('curl')) resolve()
  }))
  const script = curls.replaceAll('127.0.0.1:8080', `127.0.0.1:${port}`)
  const { stdout } = await promisify(execFile)(...cleanly('bash', ['-c', script]))
  t.match(stdout, /"object":\s*"chat.completion"/)
  t.match(stdout, /llm_gateway_tokens_total\{protocol="chat_completions"/)
})

t.test('the key commands of the page work in its order', async (t) => {
  const commands = shellBlock('docs/keys-and-limits.md', 'export LLM_GATEWAY_CONFIG')
  const questions = shellBlock('docs/keys-and-limits.md', 'llm-gateway usage')
  const folder = t.testdir({
    'gateway.yaml': 'upstreams: { demo: { simulate: true } }\ngroups: { chat: { protocols: [responses], upstream: demo } }\nstate: { ' +
      'engine: lmdb, path: ./data }\nprices: { models: { "*": { input: 1 } } }\n',
    // A gateway has run here.
    data: { ledger: {} },
  })
  const script = `${commands}${questions}`.replaceAll(/^llm-gateway /gm, `"${process.execPath}" "${root}dist/bin/llm-gateway.js" `)
  const { stdout } = await promisify(execFile)(...cleanly('bash', ['-ec', script]), { cwd: folder })
  const [secret, , listed, rotated, ...summed] = stdout.split('\n')
  t.match(secret, /^sk-lgw-ci-/)
  t.match(listed, /^ci +chat +active +2030-01-01T00:00:00\.000Z +balance=200000 .+ budgets=5\/month,.+ Europe\/Berlin +team=search$/)
  t.match(rotated, /^sk-lgw-ci-/)
  t.not(rotated, secret)
  t.match(summed, [/^day +model +requests /, /^all +0 /, ''])
})

t.test('the configuration file of the page is valid', async (t) => {
  const yaml = blocksOf(paper('docs/configuration.md'), 'yaml').find((block) => block.startsWith('listen')) ?? ''
  t.match(parseConfig(yaml, { OPENAI_API_KEY: 'a', ANTHROPIC_API_KEY: 'b' }), { groups: { chat: { limits: { concurrency: 200 } } } })
  t.throws(() => parseConfig(yaml, {}), /OPENAI_API_KEY/)
})

t.test('the example apps of the page start, and end', async (t) => {
  const folder = t.testdir()
  for (const js of blocks('js')) {
    const script = `${js.replace('./data', folder)}\nconsole.log(app.hasDecorator('llm'))\nawait app.close()`
    const { stdout } = await promisify(execFile)(
      ...cleanly(process.execPath, ['--input-type=module', '-e', script], { OPENAI_API_KEY: 'sk-of-the-provider' }), { cwd: root }
    )
    t.equal(stdout, 'true\n')
  }
  t.ok(existsSync(`${folder}/ledger`), 'one of them keeps usage')
})

t.test('a mount that is not at /v1 passes the version on, as the page says', async (t) => {
  t.match(paper('docs/drop-in.md'), "At `/llm` that is `prefix: '/llm'` in the gateway's options, and `rewritePrefix: ''` in the mount's;")
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(llmGateway, {
    routes: false, prefix: '/llm', groups: { all: { protocols: everyProtocol } }, keys: [{ id: 'a', group: 'all', secret }],
  })
  await app.register(httpProxy, { ...proxyOptions(), upstream: upstream.url, prefix: '/llm', rewritePrefix: '' })
  for (const [url, key, status] of [
    ['/llm/v1/chat/completions', secret, 200], ['/llm/chat/completions', secret, 200], ['/llm/v1/chat/completions', 'wrong', 401],
  ] as const) {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const reply = await app.inject({ method: 'POST', url, headers, payload: '{"model":"m","messages":[{"role":"user","content":"hi"}]}' })
    t.equal(reply.statusCode, status, url)
  }
  t.same(upstream.seen.map(({ url }) => url), ['/v1/chat/completions', '/v1/chat/completions'])
})

t.test('the two plugins that the page names count the tokens of a mount', async (t) => {
  for (const name of ['metrics', 'usage']) t.match(paper('docs/drop-in.md'), `\`await app.register(${name})\``)
  const upstream = await startUpstream(t)
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(metrics)
  await app.register(usage)
  await app.register(httpProxy, { upstream: upstream.url, prefix: '/v1', rewritePrefix: '/v1' })
  await app.inject({
    method: 'POST', url: '/v1/chat/completions', headers: { 'content-type': 'application/json' }, payload: '{"model":"m","messages":[]}',
  })
  t.match((await app.inject('/metrics')).body, /^llm_gateway_tokens_total\{protocol="chat_completions",.*\} [1-9]/m)
})

t.test('every option of the configuration file stands on a page', async (t) => {
  const names = new Set<string>()
  const walk = (schema: unknown): void => {
    if (typeof schema !== 'object' || schema === null) return
    if ('properties' in schema) for (const name of Object.keys(Object(schema.properties))) names.add(name)
    for (const part of Object.values(schema)) walk(part)
  }
  walk(JSON.parse(readFileSync(new URL('../schemas/gateway.schema.json', import.meta.url), 'utf8')))
  t.ok(names.size > 50)
  const told = papers.map(({ text }) => text).join('\n')
  t.strictSame([...names].filter((name) => !new RegExp(`(?<!\\w)${name.replace('$', '\\$')}\\b`).test(told)), [])
})

t.test('the diff of the pages is the one of the example', async (t) => {
  const [example = ''] = [
    ...readFileSync(new URL('../examples/existing-gateway/README.md', import.meta.url), 'utf8').matchAll(/```diff\n([\s\S]*?)```/g),
  ].map(([, code = '']) => code)
  const added = (text: string): string[] => text.split('\n').filter((line) => line.startsWith('+'))
  t.equal(added(example).length, 6)
  for (const page of ['README.md', 'docs/drop-in.md']) t.strictSame(added(blocksOf(paper(page), 'diff').join('\n')), added(example), page)
})
