/** The built program as a process of its own: signals, exit codes, what it prints. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { freePort } from '../helpers/free-port.js'
import { unreadPipe } from '../helpers/full-pipe.js'
import { cleanly, launch, originOf, program, until, type Child } from '../helpers/launch.js'
import { listening } from '../helpers/listening.js'
import { replyFixture, startUpstream } from '../helpers/upstream.js'
import { chat, status, yaml } from '../standalone/run.js'

function gateway (t: Test, args: readonly string[], env: Record<string, string> = {}): Child {
  return launch(t, program, args, env)
}

t.test('starts, reloads at SIGHUP, and ends at SIGTERM after its last stream', async (t) => {
  const upstream = await startUpstream(t)
  const file = join(t.testdir({}), 'gateway.yaml')
  writeFileSync(file, yaml(upstream.url, ['key-a']))
  const child = gateway(t, ['start', '--config', file], { PORT: '0' })
  const origin = await originOf(child)
  t.equal(await status(origin, 'key-a'), 200)

  writeFileSync(file, yaml(upstream.url, ['key-b']))
  child.process.kill('SIGHUP')
  await until(child.out, /configuration reloaded/)
  t.equal(await status(origin, 'key-a'), 401)

  let release = (): void => {}
  const gate = new Promise<void>((resolve) => { release = resolve })
  upstream.queue({ fixture: 'chat_completions.include_usage.sse', split: 'events', before: async (write) => write > 0 && await gate })
  const stream = await chat(origin, 'key-b', { stream: true })
  child.process.kill('SIGTERM')
  let refused = await chat(origin, 'key-b')
  while (refused.status === 200) refused = await chat(origin, 'key-b')
  t.equal(refused.status, 503)
  release()
  t.match(await stream.text(), /\[DONE\]\n\n$/)
  const endedAt = Date.now()
  t.equal(await child.exited, 0)
  t.comment(`exit ${Date.now() - endedAt} ms after the last stream`)
  t.same(child.err, [])
})

t.test('a reader of the log that went away holds no end: what runs is served to its last event', async (t) => {
  const upstream = await startUpstream(t)
  const text = yaml(upstream.url, ['key-a'])
  const child = gateway(t, ['start', '--config', join(t.testdir({ 'gateway.yaml': text }), 'gateway.yaml')], { PORT: '0' })
  const origin = await originOf(child)
  child.process.stdout?.destroy()
  let release = (): void => {}
  const gate = new Promise<void>((resolve) => { release = resolve })
  upstream.queue({ fixture: 'chat_completions.include_usage.sse', split: 'events', before: async (write) => write > 0 && await gate })
  const stream = await chat(origin, 'key-a', { stream: true })
  child.process.kill('SIGTERM')
  while ((await fetch(`${origin}/health`).catch(() => null))?.status === 200);
  release()
  t.match(await stream.text(), /\[DONE\]\n\n$/)
  t.equal(await child.exited, 0)
  t.same(child.err, [])
})

t.test('a full disk below its output ends no gateway, and is told by a command', async (t) => {
  const upstream = await startUpstream(t)
  const file = join(t.testdir({ 'gateway.yaml': yaml(upstream.url, ['key-a']) }), 'gateway.yaml')
  const full = openSync('/dev/full', 'w')
  t.teardown(() => closeSync(full))
  const port = String(await freePort())
  const child = spawn(...cleanly(process.execPath, [program, 'start', '--config', file], { PORT: port }), { stdio: ['ignore', full, full] })
  t.teardown(() => child.kill('SIGKILL'))
  const origin = `http://127.0.0.1:${port}`
  while (child.exitCode === null && (await fetch(`${origin}/health`).catch(() => null))?.status !== 200);
  t.equal(await status(origin, 'key-a'), 200)
  child.kill('SIGTERM')
  t.same(await once(child, 'exit'), [0, null])

  const told = spawnSync(...cleanly(process.execPath, [program, '--help']), { stdio: ['ignore', full, 'pipe'], encoding: 'utf8' })
  t.same([told.status, told.stderr], [1, 'llm-gateway: the output cannot be written (ENOSPC)\n'])
  const mute = spawnSync(...cleanly(process.execPath, [program, 'nowhere']), { stdio: ['ignore', 'pipe', full] })
  t.equal(mute.status, 2, 'nowhere to say what is wrong')
})

t.test('a start that fails ends where nobody reads what it says', async (t) => {
  const text = yaml('http://127.0.0.1:9', [], 'validation: { schemas: { chat: ./nowhere.json } }')
  const dir = t.testdir({ 'gateway.yaml': text })
  const { fd, fill } = unreadPipe(t, dir)
  fill()
  const file = join(dir, 'gateway.yaml')
  const child = spawn(...cleanly(process.execPath, [program, 'start', '--config', file], { PORT: '0' }), { stdio: ['ignore', fd, fd] })
  t.teardown(() => child.kill('SIGKILL'))
  t.same(await once(child, 'exit'), [1, null])
})

t.test('check takes a pipe, start does not: it reads its file again', async (t) => {
  const file = join(t.testdir({ 'gateway.yaml': yaml('http://127.0.0.1:9', []) }), 'gateway.yaml')
  const piped = (command: string) => spawnSync(
    'sh', ['-c', `cat '${file}' | '${process.execPath}' '${program}' ${command} --config /dev/stdin`], { encoding: 'utf8' }
  )
  t.same([piped('check').status, piped('check').stdout], [0, '/dev/stdin: ok\n'])
  const refused = piped('start')
  t.equal(refused.status, 1)
  t.equal(refused.stderr, '/dev/stdin: the file cannot be read (NOT_A_FILE): it has to be a plain file, ' +
    'because a gateway that runs reads it again\n')
})

t.test('a signal to end that comes before all is loaded is not lost, and ends it there where Node hears it', async (t) => {
  const file = join(t.testdir({ 'gateway.yaml': yaml('http://127.0.0.1:9', []) }), 'gateway.yaml')
  // As soon as somebody listens, and once: to the first process of a container it would not be sent before.
  const early = 'let sent=false;' +
    'process.on("newListener",(name)=>{if(name==="SIGTERM"&&!sent)sent=setImmediate(()=>process.kill(process.pid,name))})'
  const child = launch(t, `--import=data:text/javascript,${early}`, [program, 'start', '--config', file], { PORT: '0' })
  t.equal(await child.exited, 0)
  t.same(child.err, [])
  // From Node 22 a program is loaded in one turn of the loop, and hears of nothing meanwhile.
  if (Number.parseInt(process.versions.node) < 22) t.equal(child.out.size, 0)
})

t.test('a worker leaves a signal to its primary, also before all is loaded', async (t) => {
  const dir = t.testdir({})
  const file = join(dir, 'gateway.yaml')
  writeFileSync(file, yaml('http://127.0.0.1:9', [], 'listen: { workers: 2 }').replace('engine: memory', `engine: lmdb, path: ${dir}/data`))
  const early = 'import{isWorker}from"node:cluster";' +
    'if(isWorker)process.on("newListener",(name)=>{if(name==="SIGTERM")setImmediate(()=>process.kill(process.pid,name))})'
  const child = launch(t, `--import=data:text/javascript,${early}`, [program, 'start', '--config', file], { PORT: '0' })
  await originOf(child)
  child.process.kill('SIGTERM')
  t.equal(await child.exited, 0)
  t.same(child.err, [])
})

t.test('a worker that dies stops no other one where nobody reads the log', async (t) => {
  const upstream = await startUpstream(t)
  const dir = t.testdir({})
  const file = join(dir, 'gateway.yaml')
  writeFileSync(
    file, yaml(upstream.url, ['key-a'], 'listen: { workers: 2 }').replace('engine: memory', `engine: lmdb, path: ${dir}/data`)
  )
  const { fd, read, fill } = unreadPipe(t, dir)
  const port = String(await freePort())
  const command = cleanly(process.execPath, [program, 'start', '--config', file], { PORT: port })
  const child = spawn(...command, { stdio: ['ignore', fd, 'ignore'] })
  t.teardown(() => child.kill('SIGKILL'))
  const origin = `http://127.0.0.1:${port}`
  const workers = (): string[] => readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(' ')
  for (let said = ''; !said.includes('llm-gateway listens on'); said += read()) await pause(20)
  fill()
  const before = workers()
  process.kill(Number(before[0]), 'SIGKILL')
  while (workers().length < 2 || workers().includes(String(before[0]))) await pause(5)
  // While the new one starts the other one logs.
  for (let request = 0; request < 20; request += 1) {
    await status(origin, 'key-a').catch(() => {})
    await pause(50)
  }
  child.kill('SIGTERM')
  t.same(await once(child, 'exit'), [0, null])
})

t.test('a second signal ends it at once, whatever runs', async (t) => {
  const upstream = await startUpstream(t)
  const text = yaml(upstream.url, ['key-a'], 'forward: { drain: { maxMs: 60000 } }')
  const child = gateway(t, ['start', '--config', join(t.testdir({ 'gateway.yaml': text }), 'gateway.yaml')], { PORT: '0' })
  const origin = await originOf(child)
  const fixture = 'chat_completions.include_usage.sse'
  upstream.queue({ fixture, stallAt: replyFixture(fixture).indexOf('\n\n') + 2 })
  const stream = await chat(origin, 'key-a', { stream: true })
  child.process.kill('SIGINT')
  while ((await fetch(`${origin}/health`)).status === 200);
  child.process.kill('SIGINT')
  t.equal(await child.exited, 130)
  await t.rejects(stream.text())
})

t.test('an address in use ends it with 1', async (t) => {
  const { port } = new URL(await listening(t, createServer()))
  const child = gateway(t, ['start'], { PORT: port })
  t.equal(await child.exited, 1)
  t.match(child.err.join('\n'), /^llm-gateway: .*EADDRINUSE/)
})

t.test('a wrong configuration ends it with 1, its path named and nothing listening', async (t) => {
  const file = join(t.testdir({ 'gateway.yaml': yaml('http://127.0.0.1:9', [], 'groups.chat: 1') }), 'gateway.yaml')
  for (const command of ['start', 'check']) {
    const child = gateway(t, [command, '--config', file], { PORT: '0' })
    t.equal(await child.exited, 1, command)
    t.same(child.err, [`${file}:5: groups.chat: is not known`])
    t.equal(child.out.size, 0)
  }
})

t.test('the file may be named by the environment', async (t) => {
  const file = join(t.testdir({ 'gateway.yaml': yaml('http://127.0.0.1:9', []) }), 'gateway.yaml')
  const child = gateway(t, ['check'], { LLM_GATEWAY_CONFIG: file })
  t.equal(await child.exited, 0)
  t.equal(await child.out.next(), `${file}: ok`)
})

t.test('a reader of the log that stands still holds neither requests, memory nor the end', async (t) => {
  const text = 'upstreams: { a: { simulate: true } }\ngroups: { chat: { protocols: [chat_completions] } }\nkeys: [{ id: a, group: chat, ' +
    'secret: key-a }]\nstate: { engine: memory }\noverload: { maxLoopDelayMs: 0 }\n'
  const file = join(t.testdir({ 'gateway.yaml': text }), 'gateway.yaml')
  const child = gateway(t, ['start', '--config', file], { PORT: '0' })
  const origin = await originOf(child)
  child.process.stdout?.pause()
  // Each tells a line of a few hundred bytes: more than the pipe and the memory for it hold.
  const dropped = async (): Promise<number> => Number(
    /^llm_gateway_log_lines_dropped_total (\d+)/m.exec(await (await fetch(`${origin}/metrics`)).text())?.[1]
  )
  const socket = connect(Number(new URL(origin).port), '127.0.0.1').resume()
  for (let sent = 0; !(await dropped() > 0) && sent < 40_000; sent += 1_000) {
    socket.write('GET /v1/models HTTP/1.1\r\nhost: a\r\n\r\n'.repeat(1_000))
  }
  t.ok(await dropped() > 0, 'lines are dropped')
  socket.destroy()
  t.equal(await status(origin, 'key-a'), 200)
  child.process.kill('SIGTERM')
  const code = await new Promise((resolve) => child.process.once('exit', resolve))
  t.equal(code, 0)
})
