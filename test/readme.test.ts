import { execFile, spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { parseConfig } from '../plugins/standalone/config.js'
import { freePort } from './helpers/free-port.js'
import { generated, partOf, readmeUrl, writeReadme } from './scripts/readme-tables.js'

if (process.env.UPDATE_README !== undefined) writeReadme()
const readme = readFileSync(readmeUrl, 'utf8')
const root = fileURLToPath(new URL('..', import.meta.url))

function blocks (language: string): string[] {
  return [...readme.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'g'))].map(([, code = '']) => code)
}

t.test('the tables say what the code says', async (t) => {
  for (const [name, make] of Object.entries(generated)) t.equal(partOf(readme, name), make(), name)
})

t.test('the two commands are those of package.json, and the curls answer as the page says', async (t) => {
  const [commands = '', curls = ''] = blocks('sh')
  t.match(commands, /^npm ci && npm start .*\nnpm ci && npm test /)
  const port = await freePort()
  const child = spawn(process.execPath, ['dist/bin/llm-gateway.js', 'start'], { cwd: root, env: { ...process.env, PORT: String(port) }, stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill())
  let printed = ''
  await new Promise<void>((resolve) => child.stdout.on('data', (text) => {
    printed += String(text)
    if (printed.includes('curl')) resolve()
  }))
  const script = curls.replaceAll('127.0.0.1:8080', `127.0.0.1:${port}`)
  const { stdout } = await promisify(execFile)('bash', ['-c', script])
  t.match(stdout, /"object":\s*"chat.completion"/)
  t.match(stdout, /llm_gateway_tokens_total\{protocol="chat_completions"/)
})

t.test('the key commands of the page work in its order', async (t) => {
  const [, , commands = '', questions = ''] = blocks('sh')
  const folder = t.testdir({ 'gateway.yaml': 'upstreams: { demo: { simulate: true } }\ngroups: { chat: { protocols: [responses], upstream: demo } }\nstate: { engine: lmdb, path: ./data }\n' })
  const script = `${commands}${questions}`.replaceAll(/^llm-gateway /gm, `"${process.execPath}" "${root}dist/bin/llm-gateway.js" `)
  const { stdout } = await promisify(execFile)('bash', ['-ec', script], { cwd: folder })
  const [secret, , listed, rotated, ...summed] = stdout.split('\n')
  t.match(secret, /^sk-lgw-ci-/)
  t.match(listed, /^ci +chat +active +2030-01-01T00:00:00\.000Z +balance=200000 requestsPerMinute=60 +team=search$/)
  t.match(rotated, /^sk-lgw-ci-/)
  t.not(rotated, secret)
  t.match(summed, [/^day +model +requests /, /^all +0 /, ''])
})

t.test('the configuration file of the page is valid', async (t) => {
  const [yaml = ''] = blocks('yaml')
  t.match(parseConfig(yaml, { OPENAI_API_KEY: 'a', ANTHROPIC_API_KEY: 'b' }), { groups: { chat: { limits: { concurrency: 200 } } } })
  t.throws(() => parseConfig(yaml, {}), /OPENAI_API_KEY/)
})

t.test('the example app of the page starts', async (t) => {
  const [js = ''] = blocks('js')
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', `${js}\nconsole.log(app.hasDecorator('llm'))`], { cwd: root })
  t.equal(stdout, 'true\n')
})

t.test('the diff of the page is the one of the example', async (t) => {
  const [diff = ''] = blocks('diff')
  const [example = ''] = [...readFileSync(new URL('../examples/existing-gateway/README.md', import.meta.url), 'utf8').matchAll(/```diff\n([\s\S]*?)```/g)].map(([, code = '']) => code)
  const added = (text: string): string[] => text.split('\n').filter((line) => line.startsWith('+'))
  t.strictSame(added(diff), added(example))
  t.equal(added(diff).length, 6)
})

t.test('every file that the page names is there', async (t) => {
  for (const [, path = ''] of readme.matchAll(/\]\(((?!http)[^)]+)\)/g)) t.ok(existsSync(new URL(`../${path}`, import.meta.url)), path)
})
