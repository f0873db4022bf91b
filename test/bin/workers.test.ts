/** The gateway as several processes: one port, one sum, one end. */
import cluster from 'node:cluster'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { run } from '../../bin/cli.js'
import type { Io, SignalName } from '../../bin/io.js'
import type { FromWorker, ToWorker } from '../../plugins/standalone/workers/messages.js'
import { residentMb } from '../endurance/processes.js'
import { launch, originOf, program, until } from '../helpers/launch.js'
import { Signal, startUpstream } from '../helpers/upstream.js'
import { samplesOf } from '../metrics/meters.js'
import { chat, status, yaml } from '../standalone/run.js'
import { startPostgres, withoutPostgres } from '../state/postgres-server.js'

interface Running {
  readonly origin: string
  readonly signal: (name: SignalName) => void
  readonly code: Promise<number>
  readonly exits: readonly number[]
}

/** The primary is this process, its workers run the built program. */
async function start (t: Test, text: (state: string) => string, more: Pick<Io, 'logStream'> = {}): Promise<Running> {
  const dir = t.testdir({})
  const file = join(dir, 'gateway.yaml')
  writeFileSync(file, text(`engine: lmdb, path: ${dir}/data`))
  cluster.setupPrimary({ exec: program, args: ['start', '--config', file], execArgv: [] })
  t.teardown(() => { for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill('SIGKILL') })
  process.env['PORT'] = '0'
  const out = new Signal<string>()
  const signals = new Map<SignalName, () => void>()
  const exits: number[] = []
  const code = run(['start', '--config', file], {
    env: { PORT: '0' },
    out: (line) => out.push(line),
    err: (line) => out.push(line),
    progress: null,
    onSignal: (name, listener) => signals.set(name, listener),
    exit: (status) => exits.push(status),
    ...more,
  })
  const origin = String((await until(out, /^llm-gateway listens on (.*)$/))[1])
  return { origin, signal: (name) => signals.get(name)?.(), code, exits }
}

t.test('one port, one sum, one end', async (t) => {
  const upstream = await startUpstream(t)
  const { origin, signal, code, exits } = await start(
    t,
    (state) => yaml(upstream.url, ['key-a'], 'log: { level: error }\nlisten: { workers: 2 }').replace('engine: memory', state),
    { logStream: { write: () => {} } }
  )
  for (let request = 0; request < 4; request += 1) t.equal(await status(origin, 'key-a'), 200)
  const counted = async (): Promise<unknown> => /requests_total\{.*\} (\d+)/.exec(await (await fetch(`${origin}/metrics`)).text())?.[1]
  for (let scrape = 0; scrape < 2; scrape += 1) t.equal(await counted(), '4')
  await watched(t, origin)
  signal('SIGTERM')
  t.equal(await code, 0)
  t.equal(Object.keys(cluster.workers ?? {}).length, 0)
  signal('SIGINT')
  t.strictSame(exits, [130])
})

/** Memory and work are those of both workers; what one used stays counted when it is killed. */
async function watched (t: Test, origin: string): Promise<void> {
  const scrape = async (): Promise<Map<string, number>> => samplesOf(
    await (await fetch(`${origin}/metrics`, { headers: { connection: 'close' } })).text()
  )
  const pids = Object.values(cluster.workers ?? {}).map((worker) => Number(worker?.process.pid))
  const before = await scrape()
  const most = Math.max(...pids.map(residentMb)) * 1024 * 1024
  t.ok(Number(before.get('process_resident_memory_bytes')) > most * 1.2, 'the memory of two')
  t.ok(Number(before.get('nodejs_eventloop_lag_p99_seconds')) >= 0)
  t.equal(before.get('llm_gateway_shed_total{reason="heap"}'), 0)
  const used = Number(before.get('process_cpu_seconds_total'))
  t.ok(used > 0)
  await pause(1_500)
  process.kill(Number(pids[0]), 'SIGKILL')
  while (Object.values(cluster.workers ?? {}).some((worker) => worker?.process.pid === pids[0])) await pause(20)
  t.ok(Number((await scrape()).get('process_cpu_seconds_total')) >= used)
}

/** `/health` on a connection of its own: the reply, or nothing where the connection was cut. */
async function health (origin: string): Promise<string> {
  const socket = connect(Number(new URL(origin).port), '127.0.0.1')
  let text = ''
  socket.on('data', (chunk) => { text += chunk })
  socket.on('error', () => {})
  socket.write('GET /health HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n')
  await new Promise((resolve) => socket.once('close', resolve))
  return text
}

t.test('each worker has a simulated provider of its own, and a connection that a killed one had not taken is cut', async (t) => {
  const { origin, signal, code } = await start(t, (state) => [
    'upstreams: { demo: { simulate: true } }',
    'groups: { chat: { protocols: [chat_completions] } }',
    'keys: [{ id: a, group: chat, secret: key-a }]',
    `state: { ${state} }`,
    'listen: { workers: 2 }',
  ].join('\n'))
  const replies = await Promise.all(Array.from({ length: 6 }, async () => await chat(origin, 'key-a')))
  t.strictSame(replies.map((reply) => reply.status), Array(6).fill(200))
  await Promise.all(replies.map(async (reply) => await reply.text()))
  const [victim] = Object.values(cluster.workers ?? {})
  victim?.process.kill('SIGSTOP')
  const asked = [health(origin), health(origin), health(origin)]
  await pause(300)
  victim?.process.kill('SIGKILL')
  const texts = await Promise.all(asked)
  t.strictSame(texts.map((text) => text.slice(0, 15)).toSorted(), ['', 'HTTP/1.1 200 OK', 'HTTP/1.1 200 OK'])
  signal('SIGTERM')
  t.equal(await code, 0)
})

/** Refused requests, one behind the other on one connection, until each has its reply: each leaves a line in the log. */
async function refused (origin: string, requests: number): Promise<void> {
  const socket = connect(Number(new URL(origin).port), '127.0.0.1')
  socket.write('GET /v1/models HTTP/1.1\r\nhost: a\r\n\r\n'.repeat(requests))
  let replies = ''
  for await (const chunk of socket) {
    replies += String(chunk)
    if (replies.match(/HTTP\/1\.1 /g)?.length === requests) return
  }
}

t.test('lines of several workers stand whole in one log that is read slowly, and each ends once it has said its last word', async (t) => {
  const file = join(t.testdir({}), 'gateway.yaml')
  const more = 'overload: { maxLoopDelayMs: 0 }\nlisten: { workers: 2 }'
  writeFileSync(file, yaml('http://127.0.0.1:9', ['key-a'], more).replace('engine: memory', `engine: lmdb, path: ${t.testdirName}/data`))
  // As what sends telemetry does.
  const lastWord = 'data:text/javascript,process.once("beforeExit", () => process.stderr.write("sent%5Cn"))'
  const child = launch(t, `--import=${lastWord}`, [program, 'start', '--config', file], { PORT: '0' })
  const origin = await originOf(child)
  child.process.stdout?.pause()
  await Promise.all(Array.from({ length: 8 }, async () => await refused(origin, 300)))
  child.process.stdout?.resume()
  child.process.kill('SIGTERM')
  t.equal(await child.exited, 0)
  t.strictSame(child.err, ['sent', 'sent', 'sent'])
  const lines: string[] = []
  while (child.out.size > 0) lines.push(await child.out.next())
  const told = lines.filter((line) => line.includes('"level"'))
  t.strictSame(told.filter((line) => !/^\{"level":30,[^{}]*\{[^{}]*\},"msg":"model request"\}$/.test(line)), [])
  t.equal(told.length, 2_400)
})

t.test('what waits for the usage store is told of the host as a whole, once, whichever workers wrote it', { skip: withoutPostgres }, async (
  t
) => {
  const postgres = await startPostgres()
  t.teardown(postgres.stop)
  await postgres.kill()
  const upstream = await startUpstream(t)
  const more = 'log: { level: silent }\noverload: { maxLoopDelayMs: 0 }\nlisten: { workers: 2 }'
  const usageStore = `usageStore: { url: "${postgres.url}", intervalMs: 20 }`
  const { origin, signal, code } = await start(
    t, (state) => yaml(upstream.url, ['key-a'], more).replace('engine: memory', `${state}, ${usageStore}`)
  )
  const scrape = async (): Promise<Map<string, number>> => samplesOf(
    await (await fetch(`${origin}/metrics`, { headers: { connection: 'close' } })).text()
  )
  const reaches = async (name: string, wanted: (value: number) => boolean): Promise<number> => {
    for (let last = NaN, until = performance.now() + 20_000; ; last = Number((await scrape()).get(`llm_gateway_ledger_${name}`))) {
      if (wanted(last) || performance.now() > until) return last
      await pause(50)
    }
  }
  const headers = { authorization: 'Bearer key-a', 'content-type': 'application/json', connection: 'close' }
  const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] })
  for (let request = 0; request < 7; request += 1) {
    const reply = await fetch(`${origin}/v1/chat/completions`, { method: 'POST', headers, body })
    await reply.text()
    t.equal(reply.status, 200)
  }
  t.equal(await reaches('unshipped_records', (value) => value === 7), 7, 'not once for each worker')
  const lag = await reaches('lag_seconds', (value) => value > 0.2)
  t.ok(lag > 0.2 && lag < 60, `${lag}`)
  const [victim] = Object.values(cluster.workers ?? {})
  victim?.process.kill('SIGKILL')
  while (Object.values(cluster.workers ?? {}).some((worker) => worker === victim)) await pause(20)
  t.equal(await reaches('unshipped_records', (value) => value === 7), 7, 'nor less by those of a worker that is dead')
  await postgres.start()
  t.equal(await reaches('unshipped_records', (value) => value === 0), 0)
  t.equal(await reaches('lag_seconds', (value) => value === 0), 0)
  t.strictSame(await postgres.ask('SELECT count(*)::int AS records FROM llm_gateway.usage'), [{ records: 7 }])
  signal('SIGTERM')
  t.equal(await code, 0)
})

t.test('a worker does what its primary says, and leaves signals to it', async (t) => {
  const upstream = await startUpstream(t)
  for (const more of [{ logStream: { write: () => {} } }, {}]) {
    const said = new Signal<FromWorker>()
    const signals: SignalName[] = []
    let tell = (_message: ToWorker): void => {}
    let closed = 0
    const code = run(['start', '--config', 'gateway.yaml'], {
      env: { PORT: '0' },
      out: () => {},
      err: () => {},
      progress: null,
      onSignal: (name, listener) => {
        signals.push(name)
        listener()
      },
      exit: () => {},
      primary: { send: (message) => said.push(message), onMessage: (listener) => { tell = listener }, close: () => { closed += 1 } },
      ...more,
    })
    await said.next()
    const text = yaml(upstream.url, ['key-a'])
    tell({ type: 'start', text, firstText: text })
    t.match(await said.next(), { type: 'ready' })
    t.strictSame(signals, ['SIGHUP', 'SIGTERM', 'SIGINT'])
    tell({ type: 'stop' })
    t.equal(await code, 0)
    t.equal(closed, 1)
  }
})
