import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import t from 'tap'
import { parseDocument } from 'yaml'
import { run } from '../../bin/cli.js'
import { program } from '../helpers/launch.js'

const file = new URL('../../examples/providers/gateway.yaml', import.meta.url).pathname
const names = [...new Set([...readFileSync(file, 'utf8').matchAll(/\$\{([A-Z]\w+_\w+)\}/g)].map(([, name = '']) => name))]

/** Where the file says it. */
function lineOf (text: string): number {
  return readFileSync(file, 'utf8').split('\n').findIndex((line) => line.includes(text)) + 1
}

const digits = 'abcdef0123456789'
const complete = Object.fromEntries(names.map((name, index) => {
  return [name, name.endsWith('_SHA256') ? (digits.slice(index) + digits).repeat(8).slice(0, 64) : `secret-of-${name}`]
}))

async function check (env: Record<string, string>): Promise<{ code: number, out: string[], err: string[] }> {
  const [out, err]: [string[], string[]] = [[], []]
  const code = await run(['check', '--config', file], {
    env, out: (line) => out.push(line), err: (line) => err.push(line), progress: null, onSignal: () => {}, exit: () => {},
  })
  return { code, out, err }
}

t.test('is YAML for editors, too', async (t) => {
  t.same(parseDocument(readFileSync(file, 'utf8')).errors, [])
})

t.test('is right once the environment has what it names', async (t) => {
  t.same(await check(complete), { code: 0, out: [`${file}: ok`], err: [] })
  for (const name of ['OPENAI_API_KEY', 'ANTHROPIC_API_KEY', 'GEMINI_API_KEY']) t.ok(names.includes(name), name)
})

t.test('each variable that is missing is told by the path where it stands', async (t) => {
  const { OPENAI_API_KEY: _, TEAM_CHAT_SHA256: __, ...rest } = complete
  t.same(await check(rest), {
    code: 1,
    out: [],
    err: [
      `${file}:${lineOf('OPENAI_API_KEY}')}: upstreams.openai.credential: environment variable OPENAI_API_KEY is not set`,
      `${file}:${lineOf('TEAM_CHAT_SHA256')}: keys[0].hash: environment variable TEAM_CHAT_SHA256 is not set`,
    ],
  })
})

const missing = ['openssl', 'sha256sum'].filter((name) => spawnSync(name, ['--version']).error !== undefined)

t.test('the commands of its README end in ok', { skip: missing.length > 0 && `${missing} not installed` }, async (t) => {
  const folder = new URL('.', `file://${file}`).pathname
  const [, commands = ''] = /```sh\n([^]*?)```/.exec(readFileSync(`${folder}README.md`, 'utf8')) ?? []
  const script = commands.replaceAll('=...', '=x').replaceAll('npx llm-gateway', `${process.execPath} ${program}`).replace(
    /^.*start --config.*$/m, ''
  )
  const { stdout, stderr } = spawnSync('env', ['-i', `PATH=${String(process.env['PATH'])}`, 'sh', '-ec', script], {
    cwd: folder, encoding: 'utf8',
  })
  t.same({ stdout, stderr }, { stdout: 'gateway.yaml: ok\n', stderr: '' })
})
