import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import t, { type Test } from 'tap'
import { LogOutput, plainLines } from '../../plugins/standalone/log-output.js'
import { cleanly } from '../helpers/launch.js'

const root = new URL('../../', import.meta.url).pathname

t.test('who reads along in a terminal has plain lines where pino-pretty is installed', async (t) => {
  const shown = new PassThrough()
  const open = await plainLines(shown)
  if (open === null) throw new Error('pino-pretty is not installed')
  const log = new LogOutput(open)
  log.write('{"level":40,"time":1700000000000,"pid":1,"hostname":"h","msg":"mind the gap"}\n')
  const [line] = await once(shown, 'data')
  t.match(String(line), /^\[\d\d:\d\d:\d\d\] .*WARN.*: .*mind the gap/)
  t.equal(await plainLines(shown, async () => { throw new Error('Cannot find package') }), null)
})

const hasScript = spawnSync('script', ['--version']).status === 0

const start = [process.execPath, `${root}dist/bin/llm-gateway.js`, 'start'] as const

/** What a start writes until its first lines are out, and while it stops. */
async function shownBy (t: Test, program: string, args: readonly string[]): Promise<string> {
  const child = spawn(...cleanly(program, args, { PORT: '0' }), { stdio: ['ignore', 'pipe', 'ignore'] })
  t.teardown(() => child.kill())
  let shown = ''
  child.stdout.on('data', (chunk) => {
    shown += String(chunk)
    if (shown.includes('state.engine is memory')) child.kill('SIGTERM')
  })
  await once(child, 'close')
  return shown
}

t.test('a start shows plain lines in a terminal, and JSON in a pipe', {
  skip: hasScript ? false : 'no script(1) to have a terminal of',
}, async (t) => {
  const [program, ...args] = start
  t.match(await shownBy(t, 'script', ['-qefc', `exec ${start.join(' ')}`, '/dev/null']), /\[\d\d:\d\d:\d\d\] .*state\.engine is memory/)
  t.match(await shownBy(t, program, args), /^\{"level":40,.*state\.engine is memory/m)
})
