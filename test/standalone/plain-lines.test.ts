import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { LogOutput, plainLines } from '../../plugins/standalone/log-output.js'

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

t.test('a start shows plain lines in a terminal, and JSON in a pipe', { skip: hasScript ? false : 'no script(1) to have a terminal of' }, async (t) => {
  const start = [process.execPath, `${root}dist/bin/llm-gateway.js`, 'start'] as const
  const env = { ...process.env, PORT: '0' }
  const [program, ...args] = start
  for (const [child, expected] of [
    [spawn('script', ['-qefc', start.join(' '), '/dev/null'], { env, stdio: ['ignore', 'pipe', 'ignore'] }), /\[\d\d:\d\d:\d\d\] .*state\.engine is memory/],
    [spawn(program, args, { env, stdio: ['ignore', 'pipe', 'ignore'] }), /^\{"level":40,.*state\.engine is memory/m],
  ] as const) {
    t.teardown(() => child.kill())
    const lines = text(child.stdout)
    let shown = ''
    child.stdout.on('data', (chunk) => {
      shown += String(chunk)
      if (expected.test(shown)) child.kill('SIGTERM')
    })
    t.match(await lines, expected)
  }
})
