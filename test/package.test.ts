/** What a stranger gets: the packed package, unpacked beside its runtime dependencies and nothing else. */
import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { publint } from 'publint'
import t from 'tap'
import { launch, originOf } from './helpers/launch.js'

const root = new URL('../', import.meta.url).pathname
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
// Outside the project, whose own node_modules would be found from within.
const folder = mkdtempSync(join(tmpdir(), 'llm-gateway-package-'))
t.teardown(() => rmSync(folder, { recursive: true }))

/** Outside the test runner's loader and with no configuration of the machine's. */
function run (program: string, args: readonly string[], cwd: string): { status: number | null, stdout: string, stderr: string } {
  const env = [`PATH=${String(process.env['PATH'])}`, `HOME=${folder}`]
  return spawnSync('/usr/bin/env', ['-i', ...env, program, ...args], { cwd, encoding: 'utf8' })
}

interface Packed {
  readonly filename: string
  readonly size: number
  readonly unpackedSize: number
  readonly files: ReadonlyArray<{ readonly path: string }>
}

const pack = run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], root)
const [packed]: Packed[] = JSON.parse(pack.stdout)
if (packed === undefined) throw new Error(pack.stderr)
const paths = packed.files.map(({ path }) => path)

/** The built files that `entries` lead to, at once or on use. */
function reachable (entries: readonly string[], found = new Set<string>()): Set<string> {
  for (const path of entries.filter((entry) => !found.has(entry))) {
    found.add(path)
    const imported = readFileSync(join(root, path), 'utf8').matchAll(/\b(?:from|import) ?\(?'(\.[^']+)'/g)
    reachable([...imported].map(([, to]) => join(dirname(path), String(to))), found)
  }
  return found
}

t.test('the package holds what it needs and nothing else', async (t) => {
  const allowed =
    /^(?:dist\/(?:bin|plugins)\/.*\.(?:js|d\.ts)|schemas\/[\w.-]+\.json|examples\/demo\/(?:gateway\.yaml|README\.md)|package\.json|LICENSE|README\.md)$/
  t.same(paths.filter((path) => !allowed.test(path)), [])
  const schemas = readdirSync(join(root, 'schemas')).map((name) => `schemas/${name}`)
  for (const path of [
    'dist/plugins/index.js', 'dist/plugins/index.d.ts', 'dist/bin/llm-gateway.js', 'examples/demo/gateway.yaml', 'LICENSE', ...schemas,
  ]) {
    t.ok(paths.includes(path), path)
  }
  const built = paths.filter((path) => path.startsWith('dist/'))
  const sources = built.map((path) => path.replace(/^dist\/(?=.*\/client\/)/, '')
    .replace('state/durable-thread', 'state/lmdb/durable-thread')
    .replace(/^dist\/(\w+\/(\w+))\/\2\.js$/, '$1').replace(/^dist\/(.*?)(?:\.d\.ts|\.js)$/, '$1.ts'))
  t.same(sources.filter((path) => !existsSync(join(root, path))), [], 'nothing of a source that is gone')
  const started = built.filter((path) => /^dist\/plugins\/(?!console\/client\/).*\.js$/.test(path))
  t.equal(started.length, readdirSync(join(root, 'plugins')).length + 3, 'a file for each plugin, two entries more, two threads')
  const loaded = reachable(['dist/plugins/index.js', 'dist/plugins/state/index.js', 'dist/bin/llm-gateway.js'])
  t.same([...loaded].filter((path) => !paths.includes(path)), [], 'all that is loaded')
  t.comment(`${paths.length} files, ${packed.unpackedSize} bytes`)
  t.ok(packed.unpackedSize < 1_000_000, 'below 1 MB')
  t.ok(packed.size < 350_000, 'of which less than 350 kB are sent')
})

t.test('code is shipped without its comments but with names and lines, and declarations with comments of what is public', async (t) => {
  const built = paths.filter((path) => path.startsWith('dist/')).map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }))
  const code = built.filter(({ path }) => path.endsWith('.js'))
  t.same(code.filter(({ text }) => /^\s*(?:\/\*\*|\/\/ )/m.test(text)).map(({ path }) => path), [])
  t.ok(code.every(({ text }) => text.length / text.split('\n').length < 400), 'a stack trace shows the statement, not the file')
  t.match(code.map(({ text }) => text).join('\n'), /\bfunction collectBody\(/, 'and the name of its function')
  const declared = built.filter(({ path }) => path.endsWith('.d.ts')).map(({ text }) => text).join('')
  for (const told of ['Maximum size of a request body', '@defaultValue 33,554,432 (32 MiB)', 'What a host can do with the gateway']) {
    t.match(declared, told)
  }
  t.notMatch(declared, 'interface Gateway ', 'nothing of what plugins share')
})

t.test('publishing builds first, although the scripts of dependencies do not run here', async (t) => {
  t.match(readFileSync(join(root, '.npmrc'), 'utf8'), 'ignore-scripts=true')
  const home = join(folder, 'published')
  mkdirSync(home)
  const prepack = 'node -e "fs.writeFileSync(\'built.js\', \'\')"'
  writeFileSync(join(home, 'package.json'), JSON.stringify({ ...manifest, scripts: { prepack }, files: ['built.js'] }))
  copyFileSync(join(root, '.npmrc'), join(home, '.npmrc'))
  t.ok(manifest.scripts.prepack.includes('build'))
  const { stderr } = run('npm', ['publish', '--dry-run', '--fetch-retries=0', '--registry=http://127.0.0.1:9/'], home)
  t.match(stderr, 'built.js')
  rmSync(join(home, 'built.js'), { force: true })
  for (const page of ['README.md', 'examples/systemd/README.md', 'docs/contributing.md']) {
    const [command, ...others] = new Set(readFileSync(join(root, page), 'utf8').match(/\bnpm pack\b[^`#\n]*(?=#)/g))
    t.same(others, [], page)
    const args = String(command).trim().split(' ').slice(1)
    t.match(run('npm', [...args, '--dry-run'], home).stderr, 'built.js', `${page}: a clone that was never built`)
    rmSync(join(home, 'built.js'), { force: true })
  }
})

t.test('publint and arethetypeswrong find nothing', async (t) => {
  const tarball = readFileSync(join(folder, packed.filename))
  const { messages } = await publint({ pack: { tarball: Uint8Array.from(tarball).buffer }, strict: true })
  t.same(messages.map(({ code, path }) => `${code} ${path.join('.')}`), [])
  const analysis = await checkPackage(createPackageFromTarballData(tarball))
  const problems = 'problems' in analysis ? analysis.problems : [{ kind: 'no types' }]
  // There is no CommonJS build: every Node.js that is supported can require ES modules (`engines`), and reads `exports`.
  t.same(
    problems.filter(
      (problem) => problem.kind !== 'CJSResolvesToESM' && !('resolutionKind' in problem && problem.resolutionKind === 'node10')
    ),
    []
  )
})

t.test('few runtime dependencies, and no script at install', async (t) => {
  const names = Object.keys(manifest.dependencies)
  t.ok(names.length <= 9, names.join(', '))
  const scripts = ['preinstall', 'install', 'postinstall', 'prepare']
  t.same(Object.keys(manifest.scripts).filter((name) => scripts.includes(name)), [])
  for (const name of names) {
    const { scripts: own = {} } = JSON.parse(readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8'))
    t.same(Object.keys(own).filter((script) => ['preinstall', 'install', 'postinstall'].includes(script)), [], name)
  }
})

t.test('its OpenTelemetry API is no newer than that of a host may be: a newer one finds nothing that was registered', async (t) => {
  t.match(manifest.dependencies['@opentelemetry/api'], /^~\d+\.\d+\.0$/, 'one minor version, which each later one takes')
})

t.test('installed, it is there for import, require, types and the command line', async (t) => {
  const modules = join(folder, 'node_modules')
  const home = join(modules, manifest.name)
  mkdirSync(home, { recursive: true })
  t.equal(run('tar', ['-xzf', join(folder, packed.filename), '--strip-components=1', '-C', home], folder).status, 0)
  for (const name of [...Object.keys(manifest.dependencies), 'fastify', '@types/node', 'typescript']) {
    mkdirSync(dirname(join(modules, name)), { recursive: true })
    symlinkSync(join(root, 'node_modules', name), join(modules, name))
  }
  // What is no script, such as one that imports, is an error there.
  const app = 'const app = Fastify(); await app.register(llmGateway, options); const page = await app.inject("/console"); ' +
    'Function(page.body.split("<script type=\\"module\\">")[1].split("</script>")[0]); console.log(page.statusCode); await app.close()'
  const options = 'const options = { upstreams: { a: { url: "http://127.0.0.1:9" } }, groups: {}, console: { path: "/console" } }'
  writeFileSync(
    join(folder, 'app.mjs'),
    `import Fastify from 'fastify'\nimport llmGateway, { proxyOptions } from '${manifest.name}'\n${options}\nproxyOptions()\n${app}`
  )
  writeFileSync(
    join(folder, 'app.cjs'),
    `const Fastify = require('fastify')\nconst { default: llmGateway } = require('${manifest.name}')\n${options}\n;(async () => { ` +
      `${app} })()`
  )
  for (const script of ['app.mjs', 'app.cjs']) {
    const { status, stdout, stderr } = run(process.execPath, ['--no-warnings', script], folder)
    t.same({ status, stdout, stderr }, { status: 0, stdout: '200\n', stderr: '' }, script)
  }

  writeFileSync(join(folder, 'app.mts'), [
    "import Fastify from 'fastify'",
    `import llmGateway, { proxyOptions, type GroupOptions, type LlmGatewayOptions } from '${manifest.name}'`,
    `import { openState } from '${manifest.name}/state'`,
    "const b: GroupOptions = { protocols: ['messages'] }",
    "const { keys: store, balances, ledger } = await openState({ engine: 'memory' })",
    "const options: LlmGatewayOptions = { upstreams: { a: { url: 'http://127.0.0.1:9' } }, groups: { b }, keys: [{ id: 'c', group: 'b', " +
      "secret: process.env['KEY'] }], store, limits: { balances, ledger } }",
    'const app = Fastify()',
    'await app.register(llmGateway, options)',
    'app.addHook("onResponse", async (request) => { console.log(request.llm?.usage?.output, proxyOptions().config.llm) })',
    '// @ts-expect-error: the option does not exist',
    'await app.register(llmGateway, { gruops: {} })',
  ].join('\n'))
  writeFileSync(join(folder, 'wrong.mts'), [
    "import Fastify from 'fastify'",
    `import llmGateway, { type LlmGatewayOptions } from '${manifest.name}'`,
    'const app = Fastify()',
    'const options: LlmGatewayOptions = { gruops: {} }',
    'await app.register(llmGateway, options)',
  ].join('\n'))
  const [sample = ''] = readFileSync(join(root, 'README.md'), 'utf8').match(/(?<=```js\n)[\s\S]*?(?=```)/) ?? []
  writeFileSync(join(folder, 'sample.mts'), sample)
  copyFileSync(join(root, 'examples/existing-gateway/after.js'), join(folder, 'after.mts'))
  symlinkSync(join(root, 'node_modules/@fastify/http-proxy'), join(modules, '@fastify/http-proxy'))
  const types = run(process.execPath, [
    join(modules, 'typescript/bin/tsc'), '--noEmit', '--strict', '--exactOptionalPropertyTypes', '--module', 'nodenext', '--target',
    'es2023', '--types', 'node', 'app.mts', 'sample.mts', 'after.mts', 'wrong.mts',
  ], folder)
  t.match(types.stdout, /^wrong\.mts\(4,38\): error TS2561: .*'gruops' does not exist in type 'LlmGatewayOptions.*Did you mean to write 'groups'\?\n/)
  t.notMatch(types.stdout, /^(?:app|sample|after)\.mts/m, 'what the README shows is right in TypeScript, too')
  const lacking = types.stdout.split('\n').filter((line) => line.includes(`${manifest.name}/dist/`))
  t.same(lacking, [], 'declarations lack nothing that they name')

  const check = run(process.execPath, [join(home, manifest.bin['llm-gateway']), 'check'], folder)
  t.match(check, { status: 0, stdout: /node_modules\/fastify-llm-gateway\/examples\/demo\/(?:gateway\.yaml|README\.md): ok\n$/ })

  writeFileSync(
    join(folder, 'lmdb.yaml'), 'upstreams: { a: { simulate: true } }\ngroups: { a: { protocols: [messages] } }\nstate: { engine: lmdb }'
  )
  const missing = run(process.execPath, [join(home, manifest.bin['llm-gateway']), 'check', '--config', 'lmdb.yaml'], folder)
  t.match(
    missing,
    { status: 1, stderr: /lmdb\.yaml:3: state\.engine: lmdb needs a package that is not installed: npm install lmdb/ },
    'check refuses what a start would'
  )

  const gateway = launch(t, join(home, manifest.bin['llm-gateway']), ['start'], { PORT: '0' }, folder)
  const origin = await originOf(gateway)
  const reply = await fetch(`${origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: 'Bearer demo-chat', 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: 'hi' }] }),
  })
  t.equal(reply.status, 200, await reply.text())

  const kit = run(
    process.execPath,
    [
      join(home, manifest.bin['llm-gateway']), 'conformance', '--base-url', origin, '--key-openai', 'demo-chat', '--check', '1', '--check',
      '19',
    ],
    folder
  )
  t.match(kit, { status: 0, stdout: /2 passed, 0 failed, 0 not applicable/ }, 'the conformance kit is in it')
})
