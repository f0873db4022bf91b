/** Several processes behind one port: what they count together, and how they begin, change and end. */
import { fork } from 'node:child_process'
import cluster, { type Worker } from 'node:cluster'
import { EventEmitter, once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import Fastify from 'fastify'
import t, { type Test } from 'tap'
import { nothingKnown, type UpstreamsStatus } from '../../plugins/core/upstream/upstream-status.js'
import { parseConfig } from '../../plugins/standalone/config.js'
import { workersOf } from '../../plugins/standalone/config-values.js'
import type { FromWorker, ToWorker, WireSeries } from '../../plugins/standalone/workers/messages.js'
import { Primary } from '../../plugins/standalone/workers/primary.js'
import { Rollout } from '../../plugins/standalone/workers/rollout.js'
import { Tally } from '../../plugins/standalone/workers/tally.js'
import { channelOf, runWorker } from '../../plugins/standalone/workers/worker.js'
import { freePort } from '../helpers/free-port.js'
import { until } from '../helpers/launch.js'
import { Signal, startUpstream } from '../helpers/upstream.js'
import { status, yaml } from './run.js'

const statusOf = (name: string, active = 0): UpstreamsStatus => ({
  upstreams: [{ name, address: 'http://h', account: name, state: 'up', reason: null, returnsInMs: 0, active, models: [], workers: 1 }],
  pools: [],
  workers: 1,
})
const series = (name: string, ...numbers: number[]): WireSeries => ({ name, text: 'a="b"', labels: { a: 'b' }, numbers })

t.test('counts outlive their worker, what is measured now does not', async (t) => {
  const tally = new Tally()
  tally.count(1, [[0, [1], series('requests', 1)]])
  tally.count(1, [[0, [5]], [9, [1]]])
  tally.count(2, [[0, [2], series('requests', 2)]])
  tally.measure(1, [series('active', 3)], statusOf('a'))
  tally.measure(2, [series('active', 9)], statusOf('b'))
  t.strictSame(tally.upstreamsOfOthers(2), [statusOf('a')])
  t.strictSame(tally.othersOf(2), [series('requests', 5), series('active', 3)])
  tally.bury(1)
  t.strictSame(tally.upstreamsOfOthers(2), [])
  t.strictSame(tally.othersOf(2), [series('requests', 5)])
  tally.bury(2)
  tally.bury(3)
  t.strictSame(tally.othersOf(4), [series('requests', 7)])
})

t.test('a worker tells what it counts, and serves the sum of all', async (t) => {
  const upstream = await startUpstream(t)
  const said = new Signal<FromWorker>()
  let tell = (_message: ToWorker): void => {}
  const counted: FromWorker[] = []
  const code = runWorker({ file: 'gateway.yaml', env: { PORT: '0' }, logStream: { write: () => {} } }, {
    send: (message) => message.type === 'counted' ? counted.push(message) : said.push(message),
    onMessage: (listener) => { tell = listener },
  })
  t.strictSame(await said.next(), { type: 'asks to start' })
  tell({ type: 'flush', id: 6 })
  t.match(await said.next(), { type: 'flushed', id: 6, upstreams: nothingKnown }, 'nothing yet')
  const config = yaml(upstream.url, ['key-a'], 'console: { path: /console }')
  tell({ type: 'start', text: config, firstText: config })
  const ready = await said.next()
  if (ready.type !== 'ready') throw new Error(JSON.stringify(ready))
  const origin = `http://127.0.0.1:${ready.address.port}`
  t.equal(await status(origin, 'key-a'), 200)

  const name = 'llm_gateway_requests_total'
  const labels = { protocol: 'chat_completions', group: 'chat', model: 'm', stream: 'false', outcome: 'ok' }
  const text = Object.entries(labels).map(([label, value]) => `${label}="${value}"`).join(',')
  const others: WireSeries[] = [
    { name, text, labels, numbers: [41] },
    { name: 'llm_gateway_overhead_seconds', text: 'protocol="images"', labels: { protocol: 'images' }, numbers: [1.5, 2, 2] },
    {
      name: 'llm_gateway_overhead_seconds',
      text: 'protocol="chat_completions"',
      labels: { protocol: 'chat_completions' },
      numbers: [1.5, 2],
    },
  ]
  const scraped = (async () => await (await fetch(`${origin}/metrics`)).text())()
  let asked = await said.next()
  while (asked.type !== 'read') asked = await said.next()
  tell({ type: 'others', id: asked.id, series: others, upstreams: [statusOf('main', 3)] })
  const metrics = await scraped
  t.match(metrics, `${name}{${text}} 42\n`)
  t.match(metrics, 'llm_gateway_overhead_seconds_count{protocol="images"} 2\n')
  t.match(metrics, 'llm_gateway_overhead_seconds_count{protocol="chat_completions"} 3\n')
  t.match(JSON.stringify(counted), name)

  const looked = (async () => await (await fetch(`${origin}/console/upstreams`)).json())()
  let waited = await said.next()
  while (waited.type !== 'read') waited = await said.next()
  tell({ type: 'others', id: waited.id, series: others, upstreams: [statusOf('main', 3)] })
  t.match(await looked, { upstreams: [{ name: 'main', active: 3, workers: 2 }], workers: 2 })

  tell({ type: 'flush', id: 7 })
  let flushed = await said.next()
  while (flushed.type !== 'flushed') flushed = await said.next()
  t.match(flushed, { id: 7, gauges: [{ name: /^llm_gateway_/ }], upstreams: { upstreams: [{ name: 'main' }] } })

  const answered = async (): Promise<FromWorker> => {
    for (;;) {
      const message = await said.next()
      if (message.type === 'reloaded') return message
    }
  }
  tell({ type: 'reload', text: 'groups: 5' })
  t.strictSame(await answered(), { type: 'reloaded', ok: false })
  t.equal(await status(origin, 'key-a'), 200)
  tell({ type: 'reload', text: yaml(upstream.url, ['key-b']) })
  t.strictSame(await answered(), { type: 'reloaded', ok: true })
  t.equal(await status(origin, 'key-b'), 200)
  tell({ type: 'stop' })
  t.equal(await code, 0)
})

t.test('a worker that begins after a reload has the ports and all else of the start, and everything else of the reload', async (t) => {
  const upstream = await startUpstream(t)
  const port = await freePort()
  const first = 'metrics: { path: /first }\nconsole: { listen: { port: 0 } }\nlog: { level: error }'
  const now = `metrics: { path: /now }\nlisten: { port: ${port}, workers: 2 }\nstate: { engine: lmdb, path: /proc/nowhere }`
  const said = new Signal<FromWorker>()
  const logged: string[] = []
  let tell = (_message: ToWorker): void => {}
  const code = runWorker({ file: 'gateway.yaml', env: {}, logStream: { write: (line) => { logged.push(line) } } }, {
    send: (message) => message.type === 'counted' || said.push(message),
    onMessage: (listener) => { tell = listener },
  })
  t.strictSame(await said.next(), { type: 'asks to start' })
  tell({
    type: 'start',
    text: yaml(upstream.url, ['key-b'], now).replace('state: { engine: memory }', ''),
    firstText: yaml(upstream.url, ['key-a'], `${first}\nlisten: { port: 0 }`),
  })
  const ready = await said.next()
  if (ready.type !== 'ready') throw new Error(JSON.stringify(ready))
  t.not(ready.address.port, port)
  t.type(ready.consoleAddress?.port, 'number')
  const origin = `http://127.0.0.1:${ready.address.port}`
  t.equal(await status(origin, 'key-a'), 401)
  t.equal(await status(origin, 'key-b'), 200)
  t.equal((await fetch(`${origin}/now`)).status, 404)
  t.strictSame(logged, [], 'the level is that of the start')
  tell({ type: 'stop' })
  t.equal(await code, 0)
})

t.test('a worker that cannot start says why', async (t) => {
  for (const [text, why] of [
    ['groups: 5', /^gateway\.yaml:1: groups: /m],
    [yaml('http://127.0.0.1:9', ['a'], 'validation: { schemas: { nothing: x } }'), /^gateway\.yaml: validation\.schemas\.nothing: /],
    [yaml('http://127.0.0.1:9', ['a'], 'listen: { host: 192.0.2.1 }'), /^listen EADDRNOTAVAIL: /],
  ] as const) {
    const said: FromWorker[] = []
    const code = await runWorker({ file: 'gateway.yaml', env: { PORT: '0' } }, {
      send: (message) => { said.push(message) },
      onMessage: (listener) => setImmediate(listener, { type: 'start', text, firstText: text }),
    })
    t.equal(code, 1)
    t.match(said, [{ type: 'asks to start' }, { type: 'failed', message: why }])
  }
})

/** Speaks as a worker does, and does as the configuration's first key is called. */
const program = `
  import process from 'node:process'
  import { appendFileSync, existsSync, writeFileSync } from 'node:fs'
  const marker = new URL('marker', import.meta.url)
  const reloads = new URL('reloads', import.meta.url)
  const send = (message) => process.send(message)
  let count = 0
  process.on('message', (message) => {
    const { type, text = '', id } = message
    if (type === 'start' && text.includes('key-fails')) process.send({ type: 'failed', message: 'it fails' }, () => process.exit(1))
    else if (type === 'start' && text.includes('key-exits')) process.exit(3)
    else if (type === 'start') appendFileSync(reloads, 'starts '), setTimeout(() => {
      send({ type: 'counted', cells: [[0, [1], { name: 'started', text: '', labels: {}, numbers: [1] }]] })
      send({ type: 'ready', address: { host: '127.0.0.1', port: 1 }, consoleAddress: null })
      if (text.includes('key-reads')) send({ type: 'read', id: 1 })
    }, text.includes('key-slow') ? 500 : 0)
    else if (type === 'flush' && count++ > 0) return
    else if (type === 'flush') send({ type: 'flushed', id, gauges: [] })
    else if (type === 'others') send({ type: 'counted', cells: [] })
    else if (type === 'reload' && text.includes('key-dies')) process.kill(process.pid, 'SIGKILL')
    else if (type === 'reload' && text.includes('key-hangs')) return
    else if (type === 'reload' && text.includes('key-picky')) {
      // Before it answers: the next worker looks for it then.
      const ok = !existsSync(marker)
      writeFileSync(marker, '')
      send({ type: 'reloaded', ok })
    }
    else if (type === 'reload') {
      appendFileSync(reloads, /key-[a-z]+/.exec(text)[0] + ' ')
      send({ type: 'reloaded', ok: !text.includes('key-refused') })
    }
    else if (type === 'stop') process.disconnect()
  })
  send({ type: 'asks to start' })`

interface Run {
  readonly lines: Signal<string>
  readonly write: (key: string, more?: string) => void
  readonly start: (workers: number, more?: object) => Promise<Primary>
  /** What was reloaded by each worker that told so, in turn. */
  readonly reloads: () => string
}

function rig (t: Test, key: string): Run {
  const dir = t.testdir({ 'worker.mjs': program })
  const file = join(dir, 'gateway.yaml')
  const write = (name: string, more = ''): void => writeFileSync(file, yaml('http://127.0.0.1:9', [name], more))
  write(key)
  const lines = new Signal<string>()
  const { log } = Fastify({ logger: { stream: { write: (line: string) => { lines.push(line) } } } })
  const start = async (workers: number, more: object = {}): Promise<Primary> => {
    const primary = await Primary.start({
      file, env: {}, workers, log, ...more, program: { exec: join(dir, 'worker.mjs'), args: [], execArgv: [] },
    })
    t.teardown(() => primary.kill())
    return primary
  }
  return { lines, write, start, reloads: () => readFileSync(join(dir, 'reloads'), 'utf8') }
}

t.test('workers start, change and end together', async (t) => {
  const { lines, write, start } = rig(t, 'key-reads')
  const primary = await start(3)
  t.equal(primary.pids.length, 3)
  t.match(primary.address, { port: 1 })
  write('key-b')
  t.equal(await primary.reload(), true)
  write('key-refused')
  t.equal(await primary.reload(), false)
  writeFileSync(join(t.testdirName, 'gateway.yaml'), 'groups: 5')
  t.equal(await primary.reload(), false)
  t.match(await lines.next(), /configuration refused/)
  await primary.stop()
  t.equal(primary.pids.length, 0)
})

t.test('what a later worker refuses, the first one gives up', async (t) => {
  const { write, start, reloads } = rig(t, 'key-a')
  const primary = await start(2)
  write('key-picky')
  t.equal(await primary.reload(), false)
  t.equal(reloads(), 'starts starts key-a ')
  write('key-b')
  t.equal(await primary.reload(), true)
  t.equal(reloads(), 'starts starts key-a key-b key-b ')
  await primary.stop()
})

t.test('one that ends before its turn to give up what was refused is not waited for', async (t) => {
  const [before, next] = [{ text: 'before', priceFiles: [] }, { text: 'next', priceFiles: [] }]
  const ready = new Set<Worker>()
  const rollout = new Rollout(before, () => ready, 50)
  const asked: string[] = []
  const workers = ['one', 'two', 'three'].map((name): Worker => {
    const worker = Object({
      isConnected: () => ready.has(worker),
      process: { kill: () => {} },
      send: ({ type, text }: { readonly type: string, readonly text: string }) => {
        asked.push(`${name} ${text}`)
        if (type === 'start') return
        if (name === 'one' && text === 'before') ready.delete(second)
        setImmediate(() => rollout.answered(worker, name !== 'three'))
      },
    })
    return worker
  })
  const second: Worker = Object(workers[1])
  for (const worker of workers) {
    ready.add(worker)
    rollout.begin(worker)
  }
  t.equal(await rollout.replace(next), false)
  t.strictSame(asked.slice(3), ['one next', 'two next', 'three next', 'one before'])
})

t.test('a worker that begins later is told what the file was at the start', async (t) => {
  const told: unknown[] = []
  const worker: Worker = Object({ isConnected: () => true, send: (message: unknown) => told.push(message) })
  const rollout = new Rollout({ text: 'first', priceFiles: [] }, () => [])
  t.equal(await rollout.replace({ text: 'second', priceFiles: [] }), true)
  t.equal(await rollout.replace({ text: 'third', priceFiles: [] }), true)
  rollout.begin(worker)
  t.strictSame(told, [{ type: 'start', text: 'third', firstText: 'first' }])
})

t.test('the price lists of the file are watched with it', async (t) => {
  const { write, start } = rig(t, 'key-a')
  const primary = await start(1)
  t.strictSame(primary.priceFiles, [])
  write('key-b', 'prices: { files: [prices.json] }')
  t.equal(await primary.reload(), true)
  t.strictSame(primary.priceFiles, [join(t.testdirName, 'prices.json')])
  write('key-refused', 'prices: { files: [wrong.json] }')
  t.equal(await primary.reload(), false)
  t.strictSame(primary.priceFiles, [join(t.testdirName, 'wrong.json')], 'one that is mended is worth another look')
  await primary.stop()
})

t.test('a worker that dies is replaced', async (t) => {
  const { lines, write, start } = rig(t, 'key-a')
  const primary = await start(2)
  const [pid = 0] = primary.pids
  process.kill(pid, 'SIGKILL')
  t.match(await lines.next(), /a worker ended, another one takes its place/)
  while (primary.pids.length < 2) await pause(10)
  write('key-dies')
  t.equal(await primary.reload(), true, 'one that dies of it begins anew with it')
  await primary.stop()
})

t.test('a worker that starts while the file changes is told, and one that does not answer is replaced', async (t) => {
  const { lines, write, start, reloads } = rig(t, 'key-slow')
  const primary = await start(2, { answerMs: 2_000 })
  const [pid = 0] = primary.pids
  await pause(1_100)
  process.kill(pid, 'SIGKILL')
  await until(lines, /"waitMs":0/)
  while (reloads() !== 'starts starts starts ') await pause(10)
  write('key-c')
  t.equal(await primary.reload(), true)
  while (reloads() !== 'starts starts starts key-c key-c ') await pause(10)
  write('key-hangs')
  t.equal(await primary.reload(), true)
  await until(lines, /SIGKILL/)
  await until(lines, /SIGKILL/)
  await primary.stop()
})

t.test('one that starts while all are to stop stops', async (t) => {
  const { lines, write, start } = rig(t, 'key-a')
  const primary = await start(1)
  write('key-fails')
  t.equal(await primary.reload(), true)
  await pause(1_100)
  process.kill(Number(primary.pids[0]), 'SIGKILL')
  await until(lines, /another one takes its place/)
  await until(lines, /a worker did not start/)
  await until(lines, /"waitMs":100/)
  write('key-b')
  t.equal(await primary.reload(), true)
  while (primary.pids.length < 1) await pause(10)
  const begun = once(cluster, 'fork')
  process.kill(Number(primary.pids[0]), 'SIGKILL')
  await until(lines, /another one takes its place/)
  await begun
  await primary.stop()
  t.equal(primary.pids.length, 0)
})

t.test('the place of one that ended holds no end', async (t) => {
  const { lines, start } = rig(t, 'key-a')
  const primary = await start(1)
  const waits = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const before = waits()
  const [pid = 0] = primary.pids
  process.kill(pid, 'SIGKILL')
  t.equal(JSON.parse(String((await until(lines, /.*"waitMs":100.*/))[0])).worker, pid)
  t.equal(waits(), before + 1)
  await primary.stop()
  await pause(0)
  t.equal(waits(), before)
})

t.test('where no worker can be forked the others and their primary live on, and it is tried again', async (t) => {
  const { lines, start } = rig(t, 'key-a')
  const primary = await start(2)
  const { cwd } = process
  cluster.setupPrimary({ cwd: '/nowhere' })
  t.teardown(() => cluster.setupPrimary({ cwd: cwd() }))
  process.kill(Number(primary.pids[0]), 'SIGKILL')
  await until(lines, /"why":"SIGKILL"/)
  await until(lines, /"why":"spawn .* ENOENT"/)
  await until(lines, /a worker did not start/)
  await until(lines, /"why":"spawn .* ENOENT"/)
  t.equal(primary.pids.length, 1)
  cluster.setupPrimary({ cwd: cwd() })
  while (primary.pids.length < 2) await pause(10)
  for (const worker of Object.values(cluster.workers ?? {})) worker?.emit('error', new Error('write EPIPE'))
  t.equal(primary.pids.length, 2, 'an error of one that runs is not its end')
  await primary.stop()
})

t.test('a worker that hangs is killed when all are to end, once its requests have had their time', async (t) => {
  const { lines, write, start } = rig(t, 'key-a')
  write('key-a', 'listen: { shutdownGraceMs: 1 }')
  const primary = await start(2, { closingMs: 500 })
  write('key-b', 'forward: { drain: { maxMs: 1 } }')
  t.equal(await primary.reload(), true)
  const [pid = 0] = primary.pids
  process.kill(pid, 'SIGSTOP')
  await primary.stop()
  t.match(JSON.parse(await lines.next()), { workers: [pid], msg: 'these workers did not end in time: they are killed' })
  t.equal(primary.pids.length, 0)
})

t.test('what a worker fails of at the start is told, and none is left', async (t) => {
  for (const [key, why] of [['key-fails', /it fails/], ['key-exits', /ended before it listened \(3\)/]] as const) {
    await t.rejects(rig(t, key).start(2), { message: why })
  }
  await t.rejects(Primary.start({ file: '/nowhere/gateway.yaml', env: {}, workers: 2, log: Fastify().log }), { name: 'Error' })
})

t.test('how many: one, as many as said, or one for each core; memory is of one process', async (t) => {
  const text = (listen: string, engine: string): string => yaml('http://127.0.0.1:9', ['a'], `listen: { workers: ${listen} }`).replace(
    'memory', engine
  )
  t.equal(workersOf(parseConfig(yaml('http://127.0.0.1:9', ['a']), {})), 1)
  t.equal(workersOf(parseConfig(text('3', 'lmdb'), {})), 3)
  t.ok(workersOf(parseConfig(text('auto', 'lmdb'), {})) >= 1)
  t.throws(() => parseConfig(text('2', 'memory'), {}), /state\.engine/)
})

t.test('what a worker says to a primary that was killed is no error', async () => {
  const primary = fork(join(t.testdir({ 'primary.js': '' }), 'primary.js'))
  const worker = Object.assign(primary, { isConnected: () => true })
  const channel = channelOf(Object(worker))
  await once(primary, 'exit')
  channel?.send({ type: 'asks to start' })
  await pause(5)
})

t.test('a process that is no worker has no primary; one whose channel is closed says nothing', async (t) => {
  t.equal(channelOf(undefined), null)
  const said: unknown[] = []
  let connected = true
  const child = Object.assign(new EventEmitter(), { disconnect: () => said.push('closed') })
  const worker = Object.assign(new EventEmitter(), {
    isConnected: () => connected, send: (message: unknown) => said.push(message) > 0, process: child,
  })
  const channel = channelOf(Object(worker))
  channel?.onMessage((message) => said.push(message))
  worker.emit('message', { type: 'stop' })
  channel?.send({ type: 'asks to start' })
  connected = false
  channel?.send({ type: 'asks to start' })
  channel?.close()
  await pause(5)
  t.strictSame(said, [{ type: 'stop' }, { type: 'asks to start' }, 'closed'])
  t.match(worker, { exitedAfterDisconnect: true }, 'else Node ends the process with the channel')
})
