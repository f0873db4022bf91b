import { createWriteStream, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough, Writable } from 'node:stream'
import t from 'tap'
import { LogOutput, outputOf } from '../../plugins/standalone/log-output.js'
import { collectedOutput } from './collected-output.js'

t.test('lines that nobody takes are bounded in memory, dropped, counted, and told once somebody reads', async (t) => {
  const pipe = new PassThrough({ highWaterMark: 10 })
  let drops = 0
  const log = new LogOutput(() => pipe, 100)
  for (let i = 0; i < 20; i++) log.write('before anybody counts\n')
  log.onDrop(() => { drops += 1 })
  for (let i = 0; i < 1_000; i++) log.write('0123456789\n')
  t.ok(pipe.writableLength < 150)
  t.ok(drops > 980)
  t.equal(await log.flush(10), false, 'nobody waits for it for long')
  let text = ''
  pipe.on('data', (chunk) => { text += String(chunk) })
  t.equal(await log.flush(5_000), true)
  log.write('after\n')
  await log.flush(5_000)
  const [told, after] = text.trim().split('\n').slice(-2)
  t.match(JSON.parse(told ?? ''), { level: 40, dropped: Number, msg: /dropped/ })
  t.equal(after, 'after')
})

t.test('a full disk loses lines and nothing else, and is asked again later', async (t) => {
  const opened: string[] = []
  const log = new LogOutput(() => {
    opened.push('')
    return createWriteStream('/dev/full')
  })
  t.equal(await log.flush(5_000), true, 'nothing was written yet')
  let drops = 0
  log.onDrop(() => { drops += 1 })
  log.write('lost\n')
  await new Promise((resolve) => setTimeout(resolve, 200))
  t.equal(drops, 1)
  log.write('lost, too\n')
  t.equal(drops, 2)
  t.equal(opened.length, 1)
  t.equal(await log.flush(1), true)
  await new Promise((resolve) => setTimeout(resolve, 1_050))
  log.write('a second try\n')
  t.equal(opened.length, 2)
})

t.test('a file is written off the loop, anything else by its own stream', async (t) => {
  const file = join(t.testdir({}), 'log')
  const fd = openSync(file, 'a')
  const log = new LogOutput(outputOf(Object.assign(new PassThrough(), { fd })))
  log.write('a\n')
  log.write('b\n')
  t.equal(readFileSync(file, 'utf8'), '', 'not yet')
  await log.flush(5_000)
  t.equal(readFileSync(file, 'utf8'), 'a\nb\n')
  const pipe = Object.assign(new PassThrough(), { fd: openSync('/dev/null', 'w') })
  t.equal(outputOf(pipe)(), pipe)
  t.not(outputOf(pipe, true)(), pipe, 'but for one that other processes write to')
})

t.test('what others wrote to an output that nobody takes is waited for as lines are', async (t) => {
  const pipe = new PassThrough({ highWaterMark: 10 })
  pipe.write('llm-gateway listens')
  const log = new LogOutput(() => pipe)
  t.equal(await log.flush(10), false)
  pipe.resume()
  t.equal(await log.flush(5_000), true)
})

t.test('an output that fails again and again is listened to once', async (t) => {
  let now = Date.now()
  t.intercept(Date, 'now', { value: () => now })
  const out = new Writable({ write (_chunk, _encoding, done) { done(new Error('nobody reads')) } })
  let opened = 0
  const log = new LogOutput(() => {
    opened += 1
    return out
  })
  for (let attempt = 0; attempt < 3; attempt += 1) {
    log.write('lost\n')
    await new Promise(setImmediate)
    now += 1_000
  }
  t.equal(opened, 3)
  t.equal(out.listenerCount('error'), 1)
})

t.test('lines that come soon after another are one write, and what tells of trouble waits for no other', async (t) => {
  const { output: log, writes } = collectedOutput()
  const info = (text: string): string => `{"level":30,"msg":"${text}"}\n`
  log.write(info('a'))
  log.write(info('b'))
  t.same(writes, [])
  await new Promise((resolve) => setTimeout(resolve, 50))
  t.same(writes.splice(0), [info('a') + info('b')])
  log.write(info('c'))
  log.write('{"level":50,"msg":"trouble"}\n')
  t.same(writes, [info('c') + '{"level":50,"msg":"trouble"}\n'])
  await new Promise((resolve) => setTimeout(resolve, 50))
  t.equal(writes.length, 1)
})

t.test('lines that wait for an output that fails are dropped with those that it had', async (t) => {
  let fail = (_: Error): void => {}
  const log = new LogOutput(() => new Writable({ write (_chunk, _encoding, done) { fail = done } }))
  let drops = 0
  log.onDrop(() => { drops += 1 })
  log.write('{"level":30,"msg":"first"}\n')
  await new Promise((resolve) => setTimeout(resolve, 50))
  log.write('{"level":30,"msg":"second"}\n')
  fail(new Error('gone'))
  await new Promise((resolve) => setTimeout(resolve, 50))
  t.equal(drops, 2)
})
