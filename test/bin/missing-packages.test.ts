/** The commands where optional packages are not installed. */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'

const hooks = `export async function resolve (name, context, next) {
  if (['lmdb', 'pg'].includes(name)) throw new Error('Cannot find package')
  return await next(name, context)
}`
const without = `import { register } from 'node:module'; register('${moduleOf(hooks)}')`

function moduleOf (code: string): string {
  return `data:text/javascript;base64,${Buffer.from(code).toString('base64')}`
}

/** As the program runs it. */
const command = `
  import { run } from './bin/cli.ts'
  const io = { env: process.env, out: console.log, err: console.error, progress: null, onSignal () {}, exit: process.exit }
  process.exitCode = await run(process.argv.slice(1), io)`

function run (...args: string[]): { status: number | null, stderr: string } {
  // Node 26 deprecates `register`, and Node 20 has nothing else.
  const loaders = ['--no-deprecation', ...['./test/loader/register.js', moduleOf(without)].map((url) => `--import=${url}`)]
  return spawnSync(process.execPath, [...loaders, '--input-type=module', '--eval', command, ...args], { encoding: 'utf8' })
}

t.test('init writes a state that needs none, and check names each that is missing', async (t) => {
  const file = join(t.testdir({}), 'gateway.yaml')
  t.match(run('init', '--config', file), { status: 0, stderr: /is written/ })
  t.match(readFileSync(file, 'utf8'), 'engine: memory')
  const state = 'state: { engine: lmdb, usageStore: { url: "postgres://h/d" } }'
  writeFileSync(file, `upstreams: { a: { simulate: true } }\ngroups: { a: { protocols: [messages] } }\n${state}`)
  const { status, stderr } = run('check', '--config', file)
  t.equal(status, 1)
  t.match(stderr, /: state\.engine: lmdb needs a package that is not installed: npm install lmdb$/m)
  t.match(stderr, /: state\.usageStore: needs a package that is not installed: npm install pg$/m)
  t.equal(stderr.trim().split('\n').length, 2)
})
