/** What a response in the background used is told by a later request: it replaces what was charged, once. */
import { setTimeout as wait } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import httpProxy from '@fastify/http-proxy'
import Fastify, { type FastifyInstance } from 'fastify'
import t from 'tap'
import { gatewayOf } from '../../plugins/core/gateway.js'
import llmGateway, { proxyOptions, type LlmGatewayOptions } from '../../plugins/index.js'
import { currentBuckets } from '../../plugins/limits/budgets.js'
import { storeSideOf } from '../../plugins/limits/store-side.js'
import { memoryNotes } from '../../plugins/core/upstream/memory-notes.js'
import { memoryBalances, memoryLedger, openState, type LedgerRecord, type Notes, type State } from '../../plugins/state/index.js'
import { call, everyProtocol, listen, read, secret, startGateway, watchSettled } from '../helpers/gateway.js'
import { startUpstream, type Script, type Upstream } from '../helpers/upstream.js'
import { engines } from '../state/engines.js'
import { pricingBy } from './setup.js'

type Test = Parameters<typeof startGateway>[0]

const balance = 1_000_000
const other = 'sk-other-0123456789'
const stranger = 'sk-stranger-0123456789'
const asked = { model: 'm', input: 'hi', max_output_tokens: 500, background: true }
/** What it holds, and is charged until it is known what it used. */
const held = Math.ceil(JSON.stringify(asked).length / 4) + 500
const counts = (input: number, output: number): object => ({ input_tokens: input, output_tokens: output, total_tokens: input + output })
const response = (status: string, usage: object | null = null): object => (
  { id: 'resp_1', object: 'response', status, model: 'm-1', usage }
)
const json = (body: object): Script => ({ body })
const queued = json(response('queued'))

function stream (...events: Array<readonly [type: string, response: object]>): Script {
  const texts = events.map(([type, response]) => JSON.stringify({ type, sequence_number: 1, response }))
  const body = texts.map((text) => `data: ${text}\n\n`).join('')
  return { headers: { 'content-type': 'text/event-stream' }, body }
}

interface Front {
  readonly app: FastifyInstance
  /** Asks, and waits until the request is settled. */
  readonly ask: (script: Script, given?: Asking) => Promise<string>
  /** Makes a response in the background. */
  readonly make: (script?: Script, body?: object) => Promise<string>
}

interface Asking {
  readonly path?: string
  readonly method?: string
  readonly key?: string
  readonly body?: object
}

type Stores = Pick<State, 'balances' | 'ledger' | 'notes'>

async function open (t: Test, upstream: Upstream, state: Partial<Stores>, options: Partial<LlmGatewayOptions> = {}): Promise<Front> {
  const limits = { balance, budgets: [{ cost: 10, period: 'month' as const }] }
  const { balances, ledger, notes } = state
  const { app, settled } = await startGateway(t, upstream.url, {
    groups: { all: { protocols: everyProtocol, limits, labels: { team: 'a' } }, others: { protocols: everyProtocol } },
    keys: [
      { id: 'caller', group: 'all', secret, limits: { balance } },
      { id: 'other', group: 'all', secret: other, labels: { team: 'b' } },
      { id: 'stranger', group: 'others', secret: stranger },
    ],
    limits: { ...balances && { balances }, ...ledger && { ledger } },
    ...notes && { notes },
    prices: { currency: 'USD', models: { 'm*': { input: 1, output: 10, reasoning: 10, each: { search: 0.01 } } } },
    ...options,
  })
  const url = await listen(app)
  const ask: Front['ask'] = async (script, { path = '/resp_1', method = 'GET', key = secret, body } = {}) => {
    upstream.queue(script)
    const headers = { authorization: `Bearer ${key}` }
    const { reply } = call(`${url}/v1/responses${path}`, { method, headers, ...body && { body: JSON.stringify(body) } })
    const { bytes } = await read(await reply)
    await settled.next()
    return bytes.toString()
  }
  return { app, ask, make: async (script = queued, body = asked) => await ask(script, { path: '', method: 'POST', body }) }
}

async function recordsOf (ledger: State['ledger']): Promise<LedgerRecord[]> {
  await ledger.flush()
  const records: LedgerRecord[] = []
  for await (const record of ledger.read()) records.push(record)
  return records
}

/** Resolves when the group has spent this, and nothing is held. */
async function spent (balances: State['balances'], tokens: number, key?: string): Promise<void> {
  for (;;) {
    const now = await balances.read('all', key)
    if (now.spent === tokens && now.held === 0) return
    await wait(5)
  }
}

async function noted ({ read }: Notes, id = 'later:all:resp_1'): Promise<void> {
  while (await read(id) === null) await wait(5)
}

/** The sum of a metric over its series. */
function sum ({ app }: Front, name: string): number {
  const family = gatewayOf(app).metrics.find((each) => each.name === `llm_gateway_${name}`)
  return (family?.read() ?? []).reduce((total, reading) => total + ('value' in reading ? reading.value : 0), 0)
}

for (const { name, skip, open: openEngine } of engines) {
  t.test(`${name}: a response in the background is charged what it used, once, whichever process hears of it`, { skip }, async (t) => {
    const { state, another, close } = await openEngine()
    t.teardown(close)
    const upstream = await startUpstream(t)
    const one = await open(t, upstream, state)
    const two = another === null ? one : await open(t, upstream, await another())
    let tokens = 0
    for (const [input, output] of [[200_000, 7], [2, 7]] as const) {
      await one.make()
      await spent(state.balances, tokens + held)
      await noted(state.notes)
      await two.ask(json(response('in_progress', counts(1, 1))))
      const done = json(response('completed', counts(input, output)))
      const fronts = [one, two, one, two, one, two, one, two, one, two]
      const replies = await Promise.all(fronts.map(async ({ ask }) => await ask(done, { key: other })))
      t.ok(replies.every((reply) => reply === JSON.stringify(done.body)), 'byte for byte')
      tokens += input + output
      await spent(state.balances, tokens)
      await spent(state.balances, tokens, 'caller')
    }
    await one.ask(json(response('completed', counts(9, 9))))
    const fronts = [...new Set([one, two])]
    for (const { app } of fronts) await app.close()
    t.equal((await state.balances.read('all')).spent, tokens)
    t.equal((await state.balances.read('all', 'other')).spent, 0, 'nothing by the key that asked')
    const records = await recordsOf(state.ledger)
    t.equal(records.length, 4)
    t.equal(records.reduce((all, { charged }) => all + charged, 0), tokens)
    const told = { key: 'caller', group: 'all', model: 'm', output: 7, labels: { team: 'a' } }
    t.match(records.filter(({ output }) => output > 0).sort((a, b) => b.input - a.input), [
      { ...told, input: 200_000, charged: 200_007 - held, cost: '0.20007' },
      { ...told, input: 2, charged: 9 - held, cost: '0.000072' },
    ])
    t.equal(fronts.reduce((all, front) => all + sum(front, 'tokens_total'), 0), tokens)
    t.equal(fronts.reduce((all, front) => all + sum(front, 'cost_total'), 0).toFixed(9), '0.200142000')
  })
}

t.test('a later process charges what an earlier one remembered, in the month of the request', async (t) => {
  const engine = engines.find(({ name }) => name === 'lmdb')
  const { state, another, clock, close } = await Object(engine).open()
  const upstream = await startUpstream(t)
  const first = await open(t, upstream, state)
  t.teardown(close)
  await first.make()
  await noted(state.notes)
  await first.app.close()
  clock.now += 60_000
  const later = await another()
  const second = await open(t, upstream, later)
  await second.ask(json(response('incomplete', counts(30, 4))))
  await spent(later.balances, 34)
})

t.test('one that is told while it is still being remembered is charged what it used', async (t) => {
  const upstream = await startUpstream(t)
  const [balances, notes] = [memoryBalances(), memoryNotes()]
  let write = (): unknown => null
  const slow: Notes = {
    ...notes, write: async (...note) => await new Promise<void>((resolve) => { write = () => resolve(notes.write(...note)) }),
  }
  const front = await open(t, upstream, { balances, notes: slow })
  await front.make()
  await spent(balances, held)
  const settled = Promise.all([1, 2].map(async () => await front.ask(json(response('completed', counts(30, 4))))))
  while (upstream.seen.length < 3) await wait(5)
  await wait(100)
  const { unwritten } = storeSideOf(balances)
  t.equal(unwritten.size, 1)
  write()
  await settled
  await spent(balances, 34)
  t.equal(sum(front, 'tokens_total'), 34)
  t.equal(unwritten.size, 0, 'memory keeps none of those that are remembered')
})

t.test('one is remembered only once it is charged, so that a killed process leaves nothing to give back', async (t) => {
  const upstream = await startUpstream(t)
  const [balances, notes, ledger] = [memoryBalances(), memoryNotes(), memoryLedger()]
  const order: string[] = []
  let record = (): void => {}
  const { make } = await open(t, upstream, {
    balances: { ...balances, settle: (settlement) => { order.push('charged'); return balances.settle(settlement) } },
    notes: { ...notes, write: async (...note) => { order.push('remembered'); return await notes.write(...note) } },
    ledger: { ...ledger, append: async () => await new Promise<void>((resolve) => { record = resolve }) },
  })
  await make()
  await wait(50)
  t.same(order, [], 'while its record waits for the disk')
  record()
  await noted(notes)
  t.same(order, ['charged', 'remembered'])
})

t.test('one that is told before it is charged is charged what it used, also by the app that a reload put in place', async (t) => {
  const upstream = await startUpstream(t)
  const [balances, notes, ledger] = [memoryBalances(), memoryNotes(), memoryLedger()]
  const records: Array<() => void> = []
  const slow: State['ledger'] = {
    ...ledger, append: async (record) => await new Promise<void>((resolve) => records.push(() => resolve(ledger.append(record)))),
  }
  const before = await open(t, upstream, { balances, notes, ledger: slow })
  const after = await open(t, upstream, { balances, notes, ledger: slow })
  await before.make()
  await after.ask(json(response('completed', counts(30, 4))))
  await after.ask(json(response('completed', counts(30, 4))))
  for (const record of records) record()
  await spent(balances, 34)
  t.equal((await recordsOf(ledger)).length, 2)
  t.equal(await notes.read('later:all:resp_1'), null, 'nothing is left to be told')
  t.equal(sum(after, 'tokens_total'), 34)
})

t.test('one that is charged while its app ends is remembered', async (t) => {
  const upstream = await startUpstream(t)
  const folder = t.testdir()
  const state = await openState({ engine: 'lmdb', path: folder })
  const { app, make } = await open(t, upstream, state)
  await make()
  await app.close()
  await state.close()
  const later = await openState({ engine: 'lmdb', path: folder })
  t.teardown(later.close)
  t.match(await later.notes.read('later:all:resp_1'), `"tokens":${held}`)
})

t.test('a chat that its provider answers elsewhere is not remembered: a response with its id gives nothing back', async (t) => {
  const upstream = await startUpstream(t)
  const [balances, notes] = [memoryBalances(), memoryNotes()]
  const { ask } = await open(t, upstream, { balances, notes })
  const body = { model: 'm', messages: [{ role: 'user', content: 'hi' }], max_tokens: 500, deferred: true }
  const charged = Math.ceil(JSON.stringify(body).length / 4) + 500
  const reply = { id: 'resp_1', object: 'chat.completion', model: 'm-1', choices: [] }
  await ask(json(reply), { path: '/../chat/completions', method: 'POST', body })
  await spent(balances, charged)
  await ask(json(response('completed', counts(30, 4))))
  t.equal(await notes.read('later:all:resp_1'), null)
  t.equal((await balances.read('all')).spent, charged)
})

t.test('a stream, a cancellation and a packed reply tell it, too', async (t) => {
  const used = counts(30, 4)
  const done = response('completed', used)
  const packed = { headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' }, body: gzipSync(JSON.stringify(done)) }
  const told: ReadonlyArray<readonly [Script, Asking]> = [
    [stream(['response.in_progress', response('in_progress')], ['response.completed', done]), { path: '/resp_1?stream=true' }],
    [json(response('cancelled', used)), { path: '/resp_1/cancel', method: 'POST' }],
    [packed, {}],
  ]
  const upstream = await startUpstream(t)
  for (const [script, asking] of told) {
    const [balances, ledger, notes] = [memoryBalances(), memoryLedger(), memoryNotes()]
    const { make, ask } = await open(t, upstream, { balances, ledger, notes })
    await make(stream(['response.created', response('queued')]), { ...asked, stream: true })
    await noted(notes)
    await ask(script, asking)
    await spent(balances, 34)
    t.equal((await recordsOf(ledger)).length, 2)
  }
})

t.test('what tells no usage, and what is told to others, changes nothing', async (t) => {
  const upstream = await startUpstream(t)
  const [balances, notes] = [memoryBalances(), memoryNotes()]
  const { make, ask } = await open(t, upstream, { balances, notes })
  await make()
  await spent(balances, held)
  const done = json(response('completed', counts(30, 4)))
  await ask(done, { key: stranger })
  for (const status of ['queued', 'in_progress']) await ask(json(response(status, counts(3, 1))))
  await ask(json(response('failed')))
  await ask({ status: 404, body: response('completed', counts(9, 9)) })
  await ask(json({ id: 'resp_1', object: 'response', deleted: true }), { method: 'DELETE' })
  await ask(json({ ...done.body instanceof Object && done.body, id: 'resp_2' }), { path: '/resp_2' })
  t.equal((await balances.read('all')).spent, held)
  await ask(done)
  await spent(balances, 34)
})

t.test('what a server counts before the end of the work is not what it used', async (t) => {
  const upstream = await startUpstream(t)
  const created = stream(['response.created', response('queued', counts(0, 0))])
  for (const first of [json(response('queued', counts(0, 0))), json(response('in_progress', counts(5, 1))), created]) {
    const balances = memoryBalances()
    const front = await open(t, upstream, { balances })
    await front.make(first)
    await spent(balances, held)
    await front.ask(json(response('completed', counts(30, 4))))
    await spent(balances, 34)
    t.equal(sum(front, 'tokens_total'), 34)
  }
})

t.test('one whose maker has no limits, and no ledger, is counted all the same, and searches once', async (t) => {
  const upstream = await startUpstream(t)
  const groups = { all: { protocols: everyProtocol } }
  const front = await open(t, upstream, {}, { groups, keys: [{ id: 'caller', group: 'all', secret }] })
  const output = [{ type: 'web_search_call', action: { type: 'search' } }]
  await front.make(stream(['response.in_progress', { ...response('in_progress'), output }]), { ...asked, stream: true })
  t.equal(sum(front, 'cost_total'), 0)
  const done = json({ ...response('completed', counts(30, 4)), output })
  for (let i = 0; i < 3; i += 1) await front.ask(done)
  t.equal(sum(front, 'tokens_total'), 34)
  t.equal(sum(front, 'cost_total').toFixed(6), '0.010070')
})

t.test('without a ledger, or a price, the difference is charged all the same', async (t) => {
  const upstream = await startUpstream(t)
  for (const ledger of [null, memoryLedger()]) {
    const [balances, notes] = [memoryBalances(), memoryNotes()]
    const { app, make, ask } = await open(t, upstream, { balances, notes, ...ledger && { ledger } })
    gatewayOf(app).pricing = { ...pricingBy((_, input, output) => input + output), atMost: () => 40 }
    await make()
    await spent(balances, held)
    await noted(notes)
    await ask(json({ ...response('completed', counts(30, 4)), service_tier: 'flex' }))
    await spent(balances, 34)
    const [{ id = '' } = {}] = currentBuckets({ budgets: [{ cost: 10, period: 'month' }] }, 'USD', Date.now()) ?? []
    t.match(await balances.readBucket(id, 'all'), { spent: 40, held: 0 })
  }
})

t.test('mounts of a host charge it, too, in each way in which they send', async (t) => {
  const upstream = await startUpstream(t)
  const used = counts(30, 4)
  const done = response('completed', used)
  for (const mount of [{}, proxyOptions()]) {
    for (const [script, path] of [
      [json(done), 'resp_1'],
      [stream(['response.in_progress', response('in_progress')], ['response.completed', done]), 'resp_1?stream=true'],
    ] as const) {
      const [balances, app] = [memoryBalances(), Fastify()]
      t.teardown(() => app.close())
      await app.register(llmGateway, {
        routes: false,
        groups: { all: { protocols: everyProtocol, limits: { balance } } },
        keys: [{ id: 'caller', group: 'all', secret }],
        limits: { balances },
      })
      await app.register(httpProxy, { upstream: upstream.url, ...mount })
      const settled = watchSettled(app)
      const url = `${await listen(app)}/v1/responses`
      upstream.queue(queued, script)
      await read(await call(url, { body: JSON.stringify(asked) }).reply)
      await settled.next()
      await spent(balances, held)
      await read(await call(`${url}/${path}`, { method: 'GET' }).reply)
      await spent(balances, 34)
    }
  }
})

t.test('a pool charges by the name that its member has for the model', async (t) => {
  const upstream = await startUpstream(t)
  const [balances, ledger, notes] = [memoryBalances(), memoryLedger(), memoryNotes()]
  const target = { url: upstream.url, credential: 'x', models: { m: 'theirs' } }
  const { make, ask } = await open(t, upstream, { balances, ledger, notes }, {
    upstreams: { a: target, b: { ...target, priceFactor: 2 } },
    pools: { both: { members: ['b', { upstream: 'a', tier: 2 }] } },
    groups: { all: { protocols: everyProtocol, upstream: 'both', limits: { balance } } },
    keys: [{ id: 'caller', group: 'all', secret }],
    prices: { currency: 'USD', models: { theirs: { input: 1, output: 10, reasoning: 10 } } },
  })
  await make(json({ ...response('queued'), model: 'theirs' }))
  await noted(notes)
  await ask(json({ ...response('completed', counts(30, 4)), model: 'theirs' }))
  await spent(balances, 34)
  const told = { model: 'm', upstreamModel: 'theirs', cost: '0.00014', charged: 34 - held, bill: { factor: '2' } }
  t.match((await recordsOf(ledger)).at(-1), told)
})

t.test('a budget in a currency that a reload has replaced, or that has no prices any more, stays charged what one held', async (t) => {
  const upstream = await startUpstream(t)
  const [bucket] = currentBuckets({ budgets: [{ cost: 10, period: 'month' }] }, 'USD', Date.now()) ?? []
  const groups = { all: { protocols: everyProtocol, limits: { balance } } }
  const models = { 'm*': { input: 100, output: 1_000 } }
  const without = Object({ groups, prices: undefined, keys: [{ id: 'caller', group: 'all', secret }] })
  for (const [after, cost] of [[{ prices: { currency: 'JPY', models } }, '0.007'], [without, undefined]]) {
    const [balances, ledger, notes] = [memoryBalances(), memoryLedger(), memoryNotes()]
    const stores = { balances, ledger, notes }
    const [first, second] = [await open(t, upstream, stores), await open(t, upstream, stores, after)]
    await first.make()
    await noted(notes)
    const before = await balances.readBucket(String(bucket?.id), 'all')
    t.ok(before.spent > 0)
    await second.ask(json(response('completed', counts(30, 4))))
    await spent(balances, 34)
    t.strictSame(await balances.readBucket(String(bucket?.id), 'all'), before)
    const told = (await recordsOf(ledger)).at(-1)
    t.match(told, { charged: 34 - held, cost })
    t.equal(told?.chargedCost, undefined)
  }
})

t.test('where nothing can be remembered, it stays charged what it held', async (t) => {
  const upstream = await startUpstream(t)
  const away = async (): Promise<never> => { throw new Error('away') }
  const done = json(response('completed', counts(30, 4)))
  const others = ['{', 'null'].map((text) => ({ read: () => null, write: () => {}, take: () => text }))
  for (const notes of [{ read: away, write: away, take: away }, { read: () => null, write: () => {} }, ...others]) {
    const balances = memoryBalances()
    const { make, ask } = await open(t, upstream, { balances, notes })
    await make()
    t.equal(await ask(done), JSON.stringify(done.body))
    await spent(balances, held)
  }
})
