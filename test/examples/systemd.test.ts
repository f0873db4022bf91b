import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { launch, originOf, program, until } from '../helpers/launch.js'
import { startUpstream } from '../helpers/upstream.js'
import { needs } from '../metrics/programs.js'
import { chat } from '../standalone/run.js'

const folder = new URL('../../examples/systemd/', import.meta.url)
const unit = readFileSync(new URL('llm-gateway.service', folder), 'utf8')
const config = readFileSync(new URL('gateway.yaml', folder), 'utf8')

/** The last value of a setting, as systemd reads it. */
function setting (name: string): string {
  return String([...unit.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].at(-1)?.[1])
}

const [node = '', script = '', ...args] = setting('ExecStart').split(' ')
/** The unit with programs that are there: systemd-analyze wants to see what is to be started. */
function installed (): string {
  return unit.replace(node, process.execPath)
}

t.test('systemd accepts the unit without a word', needs('systemd-analyze'), async (t) => {
  const file = join(t.testdir({ 'llm-gateway.service': installed() }), 'llm-gateway.service')
  const { status, stdout, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', file], { encoding: 'utf8' })
  t.same({ status, stdout, stderr }, { status: 0, stdout: '', stderr: '' })
})

t.test('and finds little that it may do', needs('systemd-analyze'), async (t) => {
  const file = join(t.testdir({ 'llm-gateway.service': installed() }), 'llm-gateway.service')
  const { status, stdout, stderr } = spawnSync('systemd-analyze', ['security', '--offline=true', '--threshold=20', file], {
    encoding: 'utf8',
  })
  if (/unrecognized option/.test(stderr)) return t.comment('this systemd-analyze judges no unit that is not loaded')
  t.equal(status, 0, String(stdout.trim().split('\n').at(-1)))
})

t.test('it is given longer to end than the requests that run', async (t) => {
  const [, graceMs] = /shutdownGraceMs: (\d+)/.exec(config) ?? []
  t.ok(Number(setting('TimeoutStopSec')) >= Number(graceMs) / 1_000 + 10)
})

t.test('what it starts serves with the credential of a file, is reloaded and ends', async (t) => {
  const upstream = await startUpstream(t)
  const home = t.testdir({
    credentials: { openai: 'the-provider-key\n' },
    state: {},
    'gateway.yaml': config.replace('https://api.openai.com', upstream.url).replace('workers: auto', 'workers: 1'),
  })
  const [name, path] = setting('LoadCredential').split(':')
  t.ok(config.includes(`\${CREDENTIALS_DIRECTORY}/${name}`))
  t.ok(readFileSync(new URL('README.md', folder), 'utf8').includes(String(path)))
  t.equal(script.slice(script.indexOf('dist/')), program.slice(program.indexOf('dist/')))
  const atHome = args.map((arg) => arg.replace('/etc/llm-gateway', home))
  const env = { CREDENTIALS_DIRECTORY: join(home, 'credentials'), PORT: '0' }
  const cwd = join(home, 'state')

  const keys = launch(t, program, ['keys', 'create', ...atHome.slice(1), '--group', 'chat', '--id', 'team-a'], env, cwd)
  const secret = await keys.out.next()
  const child = launch(t, program, atHome, env, cwd)
  const origin = await originOf(child)
  const reply = await chat(origin, secret, { model: 'gpt-5-mini' })
  t.equal(reply.status, 200, await reply.text())
  t.equal(upstream.seen[0]?.headers.authorization, 'Bearer the-provider-key')

  t.equal(setting('ExecReload'), '/bin/kill -HUP $MAINPID')
  child.process.kill('SIGHUP')
  await until(child.out, /configuration reloaded/)
  child.process.kill('SIGTERM')
  t.equal(await child.exited, 0)
})

t.test('the command that its README has for other commands is given what the unit gives', async (t) => {
  const readme = readFileSync(new URL('README.md', folder), 'utf8').replaceAll('=/var/lib/', '=%S/')
  const names = 'DynamicUser User StateDirectory StateDirectoryMode WorkingDirectory UMask LoadCredential EnvironmentFile'.split(' ')
  for (const name of names) {
    t.match(readme, `-p ${name}=${setting(name)} `)
  }
})

t.test('all that it writes is below the folder that it is given', async (t) => {
  t.equal(setting('WorkingDirectory'), `%S/${setting('StateDirectory')}`)
  t.match(config, 'path: ./data')
  t.equal(setting('ProtectSystem'), 'strict')
})
