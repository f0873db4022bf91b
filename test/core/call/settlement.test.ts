import type { FastifyBaseLogger } from 'fastify'
import Fastify from 'fastify'
import t, { type Test } from 'tap'
import { gatewayOf } from '../../../plugins/core/gateway.js'
import { log } from '../../../plugins/log/index.js'
import { CallSettlement, settlementSteps, type SettlementStep, type Settler } from '../../../plugins/core/call/settlement.js'
import { memoryBalances, memoryLedger, type Account } from '../../../plugins/state/index.js'
import { call, everyProtocol, listen, read, secret, startGateway } from '../../helpers/gateway.js'
import { startUpstream, type Upstream } from '../../helpers/upstream.js'
import { settledRequest } from '../../metrics/requests.js'

const chat = '{"model":"m","messages":[{"role":"user","content":"hi"}]}'
const streamed = '{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}'
const llm = settledRequest()

function runAll (settlement: CallSettlement, lines: unknown[] = []): unknown[] {
  const log = { error: (fields: unknown, message: string) => lines.push([fields, message]) }
  Reflect.apply(settlement.run, settlement, [llm, { log }])
  return lines
}

t.test('steps run in their order, whatever order they were added in', async (t) => {
  const settlement = new CallSettlement()
  const ran: string[] = []
  settlement.onSettled(() => ran.push('first of the host'))
  for (const name of ['log', 'usage', 'metrics', 'ledger', 'trace', 'costs', 'limits'] as const) settlement.add(name, () => ran.push(name))
  settlement.onSettled(() => ran.push('second of the host'))
  runAll(settlement)
  t.strictSame(ran, ['usage', 'costs', 'limits', 'ledger', 'trace', 'metrics', 'log', 'first of the host', 'second of the host'])
})

t.test('a name that is none, and one that is taken, fail where they are added', async (t) => {
  const settlement = new CallSettlement()
  settlement.add('usage', () => {})
  const add = (name: string): unknown => Reflect.apply(settlement.add, settlement, [name, () => {}])
  t.throws(() => add('usage'), { code: 'LLM_GATEWAY_OPTION', message: /has its step usage already/ })
  t.throws(() => add('usages'), { code: 'LLM_GATEWAY_OPTION', message: /has no step usages/ })
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(log)
  await t.rejects(async () => await app.register(log), { code: 'LLM_GATEWAY_OPTION', message: /has its step log already/ })
})

t.test('each step runs, whichever of them throws, and each failure is told', async (t) => {
  const failing = (): never => { throw new Error('disk full') }
  const later = async (): Promise<never> => await Promise.reject(new Error('disk full'))
  for (const how of [failing, later]) {
    for (const broken of settlementSteps) {
      const settlement = new CallSettlement()
      const ran: string[] = []
      for (const name of settlementSteps) addStep(settlement, name, name === broken ? how : () => ran.push(name))
      const lines = runAll(settlement)
      await new Promise(setImmediate)
      t.strictSame(ran, settlementSteps.filter((name) => name !== broken))
      t.match(lines, [[{ err: { message: 'disk full' }, step: broken, id: llm.id }, 'a model request could not be settled in full']])
    }
  }
})

function addStep (settlement: CallSettlement, name: SettlementStep, settle: Settler): void {
  if (name === 'host') settlement.onSettled(settle)
  else settlement.add(name, settle)
}

t.test('a host is told of each request when all is known of it', async (t) => {
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url)
  const told: unknown[] = []
  app.llm.onSettled(({ outcome, usage }, request) => told.push([outcome, usage !== null, request.method]))
  await app.inject({
    method: 'POST',
    url: '/v1/chat/completions',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    payload: chat,
  })
  t.strictSame(told, [['ok', true, 'POST']])
})

/** A logger whose disk is full as soon as `broken` is true. */
function brokenLogger (): { logger: FastifyBaseLogger, disk: { broken: boolean, refused: number } } {
  const disk = { broken: false, refused: 0 }
  const write = (): void => {
    if (!disk.broken) return
    disk.refused += 1
    throw new Error('ENOSPC')
  }
  const logger: FastifyBaseLogger = {
    level: 'info',
    fatal: write,
    error: write,
    warn: write,
    info: write,
    debug: () => {},
    trace: () => {},
    silent: () => {},
    child: () => logger,
  }
  return { logger, disk }
}

interface Broken {
  readonly url: string
  readonly upstream: Upstream
  readonly quiet: () => Promise<Account>
  readonly refused: () => number
  readonly escaped: readonly unknown[]
}

/** What would have ended the process. */
function escapedIn (t: Test): readonly unknown[] {
  const escaped: unknown[] = []
  const note = (error: unknown): void => { escaped.push(error) }
  process.on('uncaughtException', note)
  process.on('unhandledRejection', note)
  t.teardown(() => {
    process.off('uncaughtException', note)
    process.off('unhandledRejection', note)
  })
  return escaped
}

/** A gateway that lets one request through at a time, with a host whose logger and whose own function fail. */
async function startBroken (t: Test, withLedger: boolean): Promise<Broken> {
  const upstream = await startUpstream(t)
  const balances = memoryBalances()
  const { logger, disk } = brokenLogger()
  const escaped = escapedIn(t)
  const { app } = await startGateway(t, upstream.url, {
    groups: { all: { protocols: everyProtocol, limits: { concurrency: 1 } } },
    limits: { balances, ...withLedger && { ledger: { ...memoryLedger(), append: () => { throw new Error('no space') } } } },
  }, { loggerInstance: logger, disableRequestLogging: true })
  app.llm.onSettled(() => { throw new Error('of the host') })
  const url = await listen(app)
  disk.broken = true
  return {
    url,
    upstream,
    escaped,
    refused: () => disk.refused,
    quiet: async () => {
      for (;;) {
        const now = await balances.read('all')
        if (now.held === 0 && now.active === 0) return now
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
    },
  }
}

for (const withLedger of [false, true]) {
  t.test(`a logger that throws leaves nothing held, and ends no process${withLedger ? ', with a ledger that throws too' : ''}`, async (
    t
  ) => {
    const { url, upstream, quiet, refused, escaped } = await startBroken(t, withLedger)
    const post = async (body: string): Promise<number | undefined> => {
      const reply = await call(`${url}/v1/chat/completions`, { body }).reply
      await read(reply)
      await quiet()
      return reply.statusCode
    }
    t.equal(await post(chat), 200)
    t.equal(await post(chat), 200, 'the one place is free again')
    upstream.queue({ fixture: 'chat_completions.include_usage.sse', cutAt: 300 })
    t.equal(await post(streamed), 200, 'after a stream that broke off')
    upstream.queue({ cutAt: 'headers' })
    t.equal(await post(chat), 502, 'after no reply at all')
    t.equal(await post(chat), 200)
    t.ok(refused() >= 5, `${refused()} lines could not be written`)
    t.strictSame(escaped, [])
  })
}

t.test('a logger that throws ends no process where a key or a body cannot be checked, and their callers are told', async (t) => {
  const upstream = await startUpstream(t)
  const escaped = escapedIn(t)
  const { logger, disk } = brokenLogger()
  const { app } = await startGateway(t, upstream.url, {
    keys: [], lookup: async () => await Promise.reject(new Error('down')),
  }, { loggerInstance: logger, disableRequestLogging: true })
  const bodies = await startGateway(t, upstream.url, {}, { loggerInstance: logger, disableRequestLogging: true })
  const [keyless, threadless] = [await listen(app), await listen(bodies.app)]
  const ask = async (url: string, body: string): Promise<unknown> => {
    const reply = await call(`${url}/v1/chat/completions`, { body }).reply
    return JSON.parse((await read(reply)).bytes.toString())
  }
  const { bodyPace } = gatewayOf(bodies.app)
  await Reflect.apply(Reflect.get(Object(bodyPace), 'close'), bodyPace, [])
  disk.broken = true
  t.match(await ask(keyless, chat), { error: { code: 'key_store_unavailable' } })
  t.match(await ask(threadless, chat + ' '.repeat(300_000)), { error: { code: 'body_unchecked' } })
  t.ok(disk.refused >= 2)
  t.strictSame(escaped, [])
})
