import { Writable } from 'node:stream'
import Fastify, { LogController, type FastifyBaseLogger, type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { lateOptions, type LateLine } from '../../plugins/standalone/late-lines.js'
import { LogOutput } from '../../plugins/standalone/log-output.js'
import { collectedOutput } from './collected-output.js'

interface World {
  readonly app: FastifyInstance
  readonly output: LogOutput
  readonly writes: string[]
}

/** An app that does `work` with the log of each request. */
function start (t: Test, work: (log: FastifyBaseLogger) => void, isLate = true, level = 'trace'): World {
  const { output, writes } = collectedOutput()
  const late = lateOptions(isLate ? output : undefined)
  const serializers = { unwritable: () => { throw new Error('not to be written') } }
  const app = Fastify({
    genReqId: () => 'the-id',
    logController: new LogController({ disableRequestLogging: true }),
    logger: { level, stream: output, serializers, ...late.logger },
    ...late.app,
  })
  t.teardown(() => app.close())
  app.get('/', async ({ log }) => {
    work(log)
    return ''
  })
  return { app, output, writes }
}

async function linesOf ({ app, output, writes }: World): Promise<string[]> {
  await app.inject('/')
  await output.flush(5_000)
  return writes.join('').split('\n').filter((line) => line !== '')
}

t.test('lines of requests are what the logger itself writes, in the order in which they were told', async (t) => {
  let now = 1_000
  t.intercept(Date, 'now', { value: () => now })
  const work = (log: FastifyBaseLogger): void => {
    now = 1_000
    log.info({ llm: { model: 'a "quoted" one\u2028', tokens: 1.5, none: undefined } }, 'first %s')
    now += 1
    log.debug({ a: 1 }, 'a number: %d', 7)
    now += 1
    log.info('words alone, %s', 'and one more')
    log.info(new Error('an error'))
    log.trace('trace')
    now += 1
    log.info({ b: [] })
    log.warn('warn')
    log.error(new Error('another error'))
    log.info({ err: new Error('a third one') }, 'said beside it')
    log.fatal({}, 'fatal')
    log.silent('nobody reads it')
    log.child({ more: 'bindings' }, { level: 'warn' }).info('not written')
    log.child({ more: 'bindings' }).info('written')
  }
  const withoutStack = (lines: readonly string[]): string[] => lines.map((line) => line.replace(/"stack":"(\\.|[^"])*"/g, '"stack":""'))
  const late = await linesOf(start(t, work))
  const plain = await linesOf(start(t, work, false))
  t.equal(plain.length, 11)
  t.same(withoutStack(late), withoutStack(plain))
  t.same(late.slice(0, 3).map((line) => JSON.parse(line).time), [1_000, 1_001, 1_002])
})

t.test('a line is no text before its turn, or before that of a line after it', async (t) => {
  const { app, output, writes } = start(t, (log) => {
    log.info('one of a request')
    log.info('another one')
    t.same(writes, [])
    log.warn('trouble')
  })
  await app.inject('/')
  t.same(writes.join('').trim().split('\n').map((line) => JSON.parse(line).msg), ['one of a request', 'another one', 'trouble'])
  t.equal(writes.length, 1)
  app.log.info('one of the app')
  await output.flush(5_000)
  t.match(writes.join(''), /trouble.*one of the app/s)
})

t.test('a line that cannot be made takes no other one with it, and is told as dropped', async (t) => {
  const world = start(t, (log) => {
    log.info('before')
    log.info({ unwritable: 1 })
    log.info('after')
  })
  let drops = 0
  world.output.onDrop(() => { drops += 1 })
  const lines = await linesOf(world)
  const [told, ...others] = lines.map((line) => JSON.parse(line).msg)
  t.match(told, /^log lines were dropped: .* could not be made$/)
  t.same(others, ['before', 'after'])
  t.equal(drops, 1)
})

t.test('a line that is told while others become text waits for the next time', async (t) => {
  const { output, writes } = collectedOutput()
  output.late({
    write () {
      output.write('{"level":30,"msg":"first"}\n')
      output.late({ write: () => output.write('{"level":30,"msg":"second"}\n') })
    },
  })
  // Without its own time it never comes, and the test runs out of its.
  while (!writes.join('').includes('second')) await new Promise((resolve) => setTimeout(resolve, 5))
  t.same(writes.join('').match(/first|second/g), ['first', 'second'])
})

t.test('a level that is off is off for requests, too', async (t) => {
  const world = start(t, (log) => {
    t.equal(log.level, 'warn')
    const { isLevelEnabled } = Object(log)
    t.same(['info', 'warn', 'no level'].map((level) => Reflect.apply(isLevelEnabled, log, [level])), [false, true, false])
    log.info('not written')
    log.warn('written')
  }, true, 'warn')
  t.same((await linesOf(world)).map((line) => JSON.parse(line).msg), ['written'])
})

t.test('as many lines as a request may wait for become text at once, and those that an output does not take are dropped', async (t) => {
  let made = 0
  const output = new LogOutput(() => new Writable({ write () {} }), 1_000)
  const line: LateLine = {
    write () {
      made += 1
      output.write(`{"level":30,"msg":"${'x'.repeat(80)}"}\n`)
    },
  }
  let drops = 0
  output.onDrop(() => { drops += 1 })
  for (let count = 0; count < 127; count += 1) output.late(line)
  t.equal(made, 0)
  output.late(line)
  t.equal(made, 128)
  t.ok(drops > 110)
  output.late(line)
  await new Promise((resolve) => setTimeout(resolve, 60))
  t.equal(made, 129, 'and a single one after a few milliseconds')
})
