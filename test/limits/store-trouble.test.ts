import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { gatewayOf } from '../../plugins/core/gateway.js'
import {
  memoryBalances, memoryLedger, openState, type Account, type Balances, type Decision, type HoldAsk,
} from '../../plugins/state/index.js'
import type { Shipping, Trouble } from '../../plugins/core/money/ledger.js'
import { StoreDownError } from '../../plugins/core/balances/store-down.js'
import type { BudgetEvent } from '../../plugins/limits/index.js'
import { FileLedger } from '../../plugins/state/ledger/file-ledger.js'
import { scripts } from '../../plugins/state/redis/scripts.js'
import { recover } from '../../plugins/state/ledger/recover.js'
import { RecoveredSettlements } from '../../plugins/state/ledger/recovered-settlements.js'
import { call, everyProtocol, read, secret, startGateway, watchSettled } from '../helpers/gateway.js'
import { startUpstream, usageOf } from '../helpers/upstream.js'
import { startRedis, withoutRedis } from '../state/redis/server.js'
import { messages, setup, type Given, type Setup } from './setup.js'
import { noTokens } from '../metrics/requests.js'

const chatTokens = Object.values(usageOf['chat_completions.json']?.leaves ?? {}).reduce((sum, tokens) => sum + tokens, 0)

/** A store of this process that answers late, as a far one does, and can be taken away. */
class FarStore implements Balances {
  readonly holdTtlMs: number = 60_000
  readonly #near = memoryBalances()
  /** `deaf`: it does what it is asked, and nobody hears of it. `slow`: it does so when its askers have long given up. */
  mode: 'up' | 'down' | 'deaf' | 'slow' = 'up'
  renewed: string[] = []
  /** What a slow store has still to do. */
  readonly backlog: Array<() => unknown> = []

  readonly hold = async (ask: HoldAsk): Promise<Decision> => await this.#far(() => this.#near.hold(ask))
  readonly leave: Balances['leave'] = async (id, group) => await this.#far(() => this.#near.leave(id, group))
  readonly settle: Balances['settle'] = async (settlement) => await this.#far(() => this.#near.settle(settlement))
  readonly readBucket: Balances['readBucket'] = (bucket, group, key) => this.#near.readBucket(bucket, group, key)
  readonly read: Balances['read'] = (group, key) => this.#near.read(group, key)
  readonly renew: Balances['renew'] = async (_, ids) => {
    this.renewed.push(...ids)
    if (this.mode !== 'up') throw new Error('away')
  }

  async close (): Promise<void> {}

  async #far<T> (call: () => T): Promise<T> {
    await new Promise(setImmediate)
    if (this.mode === 'down') throw new StoreDownError('does not answer', { asked: false })
    if (this.mode === 'slow') {
      this.backlog.push(call)
      throw new Error('timed out')
    }
    const answer = call()
    if (this.mode === 'deaf') throw new Error('timed out')
    return answer
  }
}

/** Ends the gateway once `requests` are settled: whatever waited for the store is sent by then, and one look tells all. */
function endOf ({ app, account }: Setup): (requests: number) => Promise<Account> {
  const settled: string[] = []
  gatewayOf(app).settlement.onSettled(({ id }) => settled.push(id))
  return async (requests) => {
    while (settled.length < requests) await new Promise((resolve) => setTimeout(resolve, 5))
    await app.close()
    return await account()
  }
}

const group = { balance: 1_000_000, concurrency: 100, requestsPerMinute: 100 }
const key = { balance: 1_000_000 }

t.test('that the store cannot answer is told with its reason, and not for each request', async (t) => {
  for (const onStoreFailure of ['closed', 'local'] as const) {
    const balances = new FarStore()
    const lines: string[] = []
    const { chat } = await setup(t, {
      group,
      onStoreFailure,
      limits: { balances },
      server: { logger: { level: 'error', stream: { write: (line) => { lines.push(line) } } } },
    })
    balances.mode = 'deaf'
    for (let i = 0; i < 3; i += 1) await chat({ max_tokens: 10 })
    t.match(
      lines.map((line) => JSON.parse(line)), [{ msg: 'the limit store cannot answer', err: { message: 'timed out' } }], onStoreFailure
    )
    t.equal(lines.length, 1)
  }
})

t.test('an answer of a host\'s own store that is none ends no process', async (t) => {
  const { url } = await startUpstream(t)
  const none = [null, 'OK', 1, { rowCount: 1 }, { ok: false }, { ok: true }, [{}], [null]]
  for (const [method, expected] of [['settle', 200], ['hold', 500]] as const) {
    for (const answer of none) {
      const { app } = await startGateway(t, url, {
        groups: { all: { protocols: everyProtocol, limits: group } },
        keys: [{ id: 'caller', group: 'all', secret }],
        limits: { balances: Object.assign(new FarStore(), { [method]: async () => answer }) },
      })
      const settled = watchSettled(app)
      const headers = { authorization: `Bearer ${secret}` }
      const { statusCode } = await app.inject({ method: 'POST', url: '/v1/chat/completions', headers, payload: { model: 'm', messages } })
      t.equal(statusCode, expected, `${method}: ${JSON.stringify(answer)}`)
      await settled.next()
      await new Promise(setImmediate)
    }
  }
})

t.test('closed: 503 that may be tried again, never 401 and never for free', async (t) => {
  const balances = new FarStore()
  const { app, chat, upstream, quiet } = await setup(t, { group, limits: { balances } })
  t.equal((await chat({ max_tokens: 10 })).status, 200)
  balances.mode = 'down'
  const refused = await chat({ max_tokens: 10 })
  t.match(refused, { status: 503, headers: { 'retry-after': '1' }, json: { error: { code: 'limit_store_unavailable' } } })
  t.equal(refused.headers['x-should-retry'], undefined)
  t.match((await app.inject('/metrics')).body, 'llm_gateway_limit_rejections_total{group="all",limit="store"} 1')
  t.equal(upstream.seen.length, 1)
  balances.mode = 'up'
  t.equal((await chat({ max_tokens: 10 })).status, 200)
  t.match(await quiet(), { spent: chatTokens * 2 })
})

t.test('closed: a hold that was made unheard is given back', async (t) => {
  const balances = new FarStore()
  const gateway = await setup(t, { group, limits: { balances } })
  const end = endOf(gateway)
  balances.mode = 'deaf'
  t.equal((await gateway.chat()).status, 503)
  balances.mode = 'up'
  t.match(await end(1), { spent: 0, held: 0, active: 0 })
})

const inChunks = { 'transfer-encoding': 'chunked' }

t.test('a hold that the store makes only when its request is over holds nothing', async (t) => {
  for (const onStoreFailure of ['closed', 'local'] as const) {
    // Two steps where the body does not tell its length, else one.
    for (const [step, headers] of [[1, {}], [1, inChunks], [0, inChunks]] as const) {
      const balances = new FarStore()
      const gateway = await setup(t, { group, onStoreFailure, limits: { balances } })
      const end = endOf(gateway)
      const { hold } = balances
      Object.assign(balances, {
        hold: async (ask: HoldAsk) => {
          if (ask.requests === step) balances.mode = 'slow'
          return await hold(ask).finally(() => { balances.mode = 'up' })
        },
      })
      const { status } = await gateway.chat({ max_tokens: 10 }, headers)
      t.equal(status, onStoreFailure === 'closed' ? 503 : 200)
      const spent = onStoreFailure === 'closed' ? 0 : chatTokens
      t.match(await end(1), { spent, held: 0, active: 0 })
      for (const late of balances.backlog) late()
      t.equal(balances.backlog.length, 1)
      t.match(await gateway.account(), { spent, held: 0, active: 0 }, `${onStoreFailure}, step ${2 - step}`)
    }
  }
})

t.test('closed: the store goes between the two steps', async (t) => {
  const balances = new FarStore()
  const gateway = await setup(t, { group, limits: { balances } })
  const end = endOf(gateway)
  const entered = balances.hold
  Object.assign(balances, {
    hold: async (ask: HoldAsk) => {
      if (ask.requests === 0) balances.mode = 'down'
      return await entered(ask)
    },
  })
  t.equal((await gateway.chat({}, inChunks)).status, 503)
  t.equal(gateway.upstream.seen.length, 0)
  t.match(
    await (await fetch(`${gateway.url}/metrics`)).text(), /balance_remaining_ratio\{group="all"\} 1\n/,
    'and nothing is given back that was not taken'
  )
  balances.mode = 'up'
  t.match(await end(1), { spent: 0, held: 0, active: 0 })
})

t.test('local: each process spends its share, and no more; the store learns of it', async (t) => {
  const balances = new FarStore()
  const gateway = await setup(t, {
    group, key, onStoreFailure: 'local', limits: { balances, leasePercent: 10, maxOutputTokens: { '*': 100 } },
  })
  const { chat, records } = gateway
  const end = endOf(gateway)
  t.equal((await chat({ max_tokens: 10 })).status, 200)
  balances.mode = 'down'
  const statuses: number[] = []
  for (let i = 0; i < 12; i += 1) statuses.push((await chat({ max_tokens: 10 })).status)
  t.same(statuses, [...Array(10).fill(200), 429, 429], 'ten of a hundred a minute')
  t.match(await balances.read('all'), { spent: chatTokens })
  balances.mode = 'up'
  t.equal((await chat({ max_tokens: 10 })).status, 200)
  t.match(await end(14), { spent: chatTokens * 12, held: 0, active: 0 })
  t.match(await balances.read('all', 'caller'), { spent: chatTokens * 12, held: 0, active: 0 })
  t.same((await records()).map(({ late }) => late.length), [0, ...Array(10).fill(2), 0])
})

t.test('local: what a key without a balance used is taken from none that it gets later', async (t) => {
  const balances = new FarStore()
  const gateway = await setup(t, { group, key: { requestsPerMinute: 20 }, onStoreFailure: 'local', limits: { balances } })
  const end = endOf(gateway)
  balances.mode = 'down'
  t.equal((await gateway.chat()).status, 200)
  balances.mode = 'up'
  t.match(await end(1), { spent: chatTokens })
  t.match(await balances.read('all', 'caller'), { spent: 0, held: 0, active: 0, tokens: chatTokens })
  t.match(await gateway.records(), [{ late: ['key', 'group'], lateBalances: ['group'] }], 'nor where a later start settles it')
})

t.test('local: a store that is back for a moment, and knows nothing yet of what was spent, gives no second share', async (t) => {
  const balances = Object.assign(new FarStore(), { settle: async () => { throw new Error('away') } })
  const { chat } = await setup(t, { group: { requestsPerMinute: 20 }, onStoreFailure: 'local', limits: { balances, leasePercent: 10 } })
  const statuses: number[] = []
  for (const mode of ['up', 'down', 'down', 'down', 'up', 'down'] as const) {
    balances.mode = mode
    statuses.push((await chat({ max_tokens: 10 })).status)
  }
  t.same(statuses, [200, 200, 200, 429, 200, 429])
})

t.test('local: an app in the place of another one, as after a reload, has its share and no other, and settles what waits', async (t) => {
  const balances = new FarStore()
  const small = { balance: 1_000_000, requestsPerMinute: 20 }
  const given: Given = { group: small, onStoreFailure: 'local', limits: { balances, leasePercent: 10 } }
  const [first, second] = [await setup(t, given), await setup(t, given)]
  const end = endOf(second)
  let lost = 0
  for (const { app } of [first, second]) gatewayOf(app).recorder.settlementLost = () => { lost += 1 }
  balances.mode = 'down'
  t.equal((await first.chat({ max_tokens: 10 })).status, 200)
  await first.app.close()
  const statuses: number[] = []
  for (let i = 0; i < 3; i += 1) statuses.push((await second.chat({ max_tokens: 10 })).status)
  t.same(statuses, [200, 429, 429])
  balances.mode = 'up'
  t.match(await end(3), { spent: chatTokens * 2, held: 0, active: 0 })
  t.equal(lost, 0)
})

for (const whose of ['group', 'key'] as const) {
  for (const limit of ['balance', 'budget'] as const) {
    t.test(`local: a ${limit} of a ${whose} that a reload lowers meanwhile has a share of what it is now, begun or not`, async (t) => {
      for (const isBegun of [true, false]) {
        const balances = new FarStore()
        const given = (amount: number): Given => {
          const limits = limit === 'balance' ? { balance: amount } : { budgets: [{ tokens: amount, period: 'total' as const }] }
          return { [whose]: limits, onStoreFailure: 'local', limits: { balances, leasePercent: 10 } }
        }
        const [before, after] = [await setup(t, given(1_000_000)), await setup(t, given(2_000))]
        const end = endOf(after)
        t.equal((await before.chat({ max_tokens: 10 })).status, 200)
        await before.quiet()
        balances.mode = 'down'
        if (isBegun) t.equal((await before.chat({ max_tokens: 10 })).status, 200)
        await before.app.close()
        const statuses: number[] = []
        for (let i = 0; i < 3; i += 1) statuses.push((await after.chat({ max_tokens: 100 })).status)
        balances.mode = 'up'
        await end(3)
        t.strictSame(statuses, [isBegun ? 503 : 200, 503, 503], 'the first one uses 170 of 200')
      }
    })
  }
}

t.test('local: a key has its share of what it has in its own group, whatever a key of that name has in another one', async (t) => {
  const balances = new FarStore()
  const upstream = await startUpstream(t)
  const { app } = await startGateway(t, upstream.url, {
    groups: Object.fromEntries(['rich', 'poor'].map((id) => [id, { protocols: ['chat_completions'], onStoreFailure: 'local' }])),
    keys: [],
    lookup: (group) => ({ id: 'alice', group, limits: { balance: group === 'rich' ? 1_000_000 : 1_000 } }),
    limits: { balances, leasePercent: 10 },
  })
  const ask = async (group: string): Promise<number> => (await app.inject({
    method: 'POST',
    url: '/v1/chat/completions',
    headers: { authorization: `Bearer ${group}` },
    payload: { model: 'm', messages, max_tokens: 500 },
  })).statusCode
  t.equal(await ask('rich'), 200)
  balances.mode = 'down'
  t.equal(await ask('rich'), 200)
  t.equal(await ask('poor'), 503)
})

t.test('local: a hold that was made unheard is charged once', async (t) => {
  const balances = new FarStore()
  const gateway = await setup(t, { group, onStoreFailure: 'local', limits: { balances } })
  const end = endOf(gateway)
  balances.mode = 'deaf'
  gateway.upstream.queue({ before: () => { balances.mode = 'up' } })
  t.equal((await gateway.chat({ max_tokens: 10 })).status, 200)
  t.match(await end(1), { spent: chatTokens, held: 0, active: 0 })
})

t.test('local: refused by the share, and what was made unheard is given back', async (t) => {
  const balances = new FarStore()
  const gateway = await setup(t, { group: { balance: 10 }, onStoreFailure: 'local', limits: { balances } })
  const end = endOf(gateway)
  balances.mode = 'deaf'
  t.match(await gateway.chat({ max_tokens: 10 }), {
    status: 503, headers: { 'retry-after': '1' }, json: { error: { code: 'limit_store_unavailable' } },
  }, 'its share is used up, not its balance')
  t.match((await gateway.app.inject('/metrics')).body, 'llm_gateway_limit_rejections_total{group="all",limit="store"} 1')
  balances.mode = 'up'
  t.match(await end(1), { spent: 0, held: 0, active: 0 })
})

t.test('what cannot reach the store to the end is told', async (t) => {
  const balances = new FarStore()
  const lines: string[] = []
  const { app, chat, upstream } = await setup(t, {
    group, limits: { balances }, server: { logger: { stream: { write: (line: string) => lines.push(line) } } },
  })
  upstream.queue({ before: () => { balances.mode = 'down' } })
  let lost = 0
  gatewayOf(app).recorder.settlementLost = () => { lost += 1 }
  t.equal((await chat()).status, 200)
  await app.close()
  t.equal(lost, 1)
  t.match(lines.filter((line) => line.includes('could not reach the state store')).map((line) => JSON.parse(line)), [{
    level: 50, settlement: { tokens: chatTokens },
  }])
})

t.test('what cannot reach the store to the end is settled by the next process of the same folder', async (t) => {
  const balances = new FarStore()
  const path = t.testdir({})
  const ledger = new FileLedger(path)
  const { app, chat, upstream } = await setup(t, { group, limits: { balances, ledger } })
  upstream.queue({ before: () => { balances.mode = 'down' } })
  t.equal((await chat()).status, 200)
  await app.close()
  await ledger.close()
  balances.mode = 'up'
  t.match(await balances.read('all'), { spent: 0, active: 1 })
  const next = new FileLedger(path)
  t.equal(await recover(next, balances, new AbortController().signal, new RecoveredSettlements()), 1)
  t.match(await balances.read('all'), { spent: chatTokens, held: 0, active: 0 })
})

t.test('a caller that leaves while the store is asked holds nothing', async (t) => {
  for (const onStoreFailure of ['closed', 'local'] as const) {
    const balances = new FarStore()
    let arrived = (): void => {}
    const asked = new Promise<void>((resolve) => { arrived = resolve })
    let answer = (): void => {}
    const wait = new Promise<void>((resolve) => { answer = resolve })
    Object.assign(balances, {
      hold: async () => {
        arrived()
        await wait
        throw new Error('timed out')
      },
    })
    const gateway = await setup(t, { group, onStoreFailure, limits: { balances } })
    const { url, upstream, app } = gateway
    const end = endOf(gateway)
    const { request } = call(`${url}/v1/chat/completions`, { body: JSON.stringify({ model: 'm', messages }) })
    await asked
    const settled = new Promise<void>((resolve) => gatewayOf(app).settlement.onSettled(() => resolve()))
    request.destroy()
    await settled
    answer()
    t.match(await end(1), { spent: 0, held: 0, active: 0 })
    t.equal(upstream.seen.length, 0)
  }
})

t.test('requests that run are renewed, those that ended are not', async (t) => {
  const balances = Object.assign(new FarStore(), { holdTtlMs: 60 })
  const { url, chat, upstream, quiet } = await setup(t, { group: { concurrency: 5 }, limits: { balances } })
  await chat()
  await quiet()
  balances.renewed = []
  let go = (): void => {}
  const wait = new Promise<void>((resolve) => { go = resolve })
  upstream.queue({ before: async () => await wait }, { before: async () => await wait })
  const calls = [1, 2].map(
    async () => await read(await call(`${url}/v1/chat/completions`, { body: JSON.stringify({ model: 'm', messages }) }).reply)
  )
  while (balances.renewed.length < 2) await new Promise((resolve) => setTimeout(resolve, 5))
  balances.mode = 'deaf'
  const before = balances.renewed.length
  while (balances.renewed.length === before) await new Promise((resolve) => setTimeout(resolve, 5))
  balances.mode = 'up'
  t.equal(new Set(balances.renewed).size, 2, 'a store that is away is asked again later')
  go()
  await Promise.all(calls)
})

/** Patient, because the machine may be busy: a server that is gone is told by its socket. */
async function withRedis (t: Test, onStoreFailure: 'closed' | 'local') {
  const server = await startRedis({ keepsAll: true })
  const state = await openState({ engine: 'redis', url: server.url, path: t.testdir({}), commandTimeoutMs: 5_000 })
  t.teardown(async () => {
    await state.close()
    await server.stop()
  })
  return {
    server,
    ...await setup(t, { group: { balance: 1_000_000 }, onStoreFailure, limits: { balances: state.balances, ledger: state.ledger } }),
  }
}

t.test('a real store dies and comes back: everything is charged once', { skip: withoutRedis }, async (t) => {
  const gateway = await withRedis(t, 'local')
  const { server, chat, balances, records } = gateway
  const end = endOf(gateway)
  const statuses: number[] = []
  const some = async (): Promise<void> => { for (let i = 0; i < 5; i += 1) statuses.push((await chat({ max_tokens: 10 })).status) }
  await some()
  await server.kill()
  await some()
  await server.start()
  while (await Promise.resolve(balances.read('all')).then(() => false, () => true)) await new Promise((resolve) => setTimeout(resolve, 5))
  await some()
  t.same([...new Set(statuses)], [200])
  t.match(await end(15), { spent: chatTokens * 15, held: 0, active: 0 })
  t.equal((await records()).reduce((sum, { charged }) => sum + charged, 0), chatTokens * 15)
})

t.test('a real store dies: closed answers 503, and 200 when it is back', { skip: withoutRedis }, async (t) => {
  const { server, chat } = await withRedis(t, 'closed')
  t.equal((await chat()).status, 200)
  await server.kill()
  t.equal((await chat()).status, 503)
  await server.start()
  while ((await chat()).status !== 200) await new Promise((resolve) => setTimeout(resolve, 20))
  t.pass('again')
})

t.test('a caller that leaves while a store that lost its scripts is asked holds nothing', { skip: withoutRedis }, async (t) => {
  const server = await startRedis()
  let [asked, answered] = ['', '']
  const held: Array<() => void> = []
  let isHeld = false
  const between = createServer((near) => {
    const far = connect(server.port, '127.0.0.1').on('data', (bytes) => {
      answered += bytes
      held.push(() => near.write(bytes))
      if (!isHeld) for (const pass of held.splice(0)) pass()
    }).on('error', () => {})
    near.on('data', (bytes) => { asked += bytes }).on('error', () => {}).pipe(far)
  }).listen(0, '127.0.0.1')
  await once(between, 'listening')
  const url = `redis://127.0.0.1:${Number(Object(between.address()).port)}`
  const state = await openState({ engine: 'redis', url, path: t.testdir({}), commandTimeoutMs: 5_000 })
  const operator = new Redis(server.url)
  t.teardown(async () => {
    operator.disconnect()
    await state.close()
    between.close()
    await server.stop()
  })
  const gateway = await setup(t, { group: { balance: 1_000_000, concurrency: 5 }, limits: { balances: state.balances } })
  await gateway.account()
  await operator.script('FLUSH')
  ;[asked, answered, isHeld] = ['', '', true]
  const { request } = call(`${gateway.url}/v1/chat/completions`, { body: JSON.stringify({ model: 'm', messages }) })
  const until = async (is: () => boolean): Promise<void> => { while (!is()) await new Promise((resolve) => setTimeout(resolve, 5)) }
  await until(() => answered.includes('NOSCRIPT'))
  // Another process has sent the script by the time that this one hears of it.
  await operator.script('LOAD', scripts.takeSteps)
  request.destroy()
  await until(() => asked.includes('settle'))
  isHeld = false
  for (const pass of held.splice(0)) pass()
  await gateway.account()
  t.match(await gateway.account(), { spent: 0, held: 0, active: 0 })
})

t.test('what waits for the usage store is told, and once that it failed, which may be a month that cannot be dropped yet', async (t) => {
  let tell: Trouble = () => {}
  const onTrouble: Shipping['onTrouble'] = (listener) => {
    tell = listener
    return () => {}
  }
  const lines: string[] = []
  const ledger = { ...memoryLedger(), shipping: { unshipped: 3, lagMs: 1_500, onTrouble } }
  const { app } = await startGateway(t, 'http://127.0.0.1:9', { limits: { ledger } }, {
    logger: { stream: { write: (line: string) => lines.push(line) } },
  })
  await app.ready()
  tell(new Error('away'), false)
  tell(new Error('away'), true)
  t.equal(lines.filter((line) => line.includes('the usage store failed or refused: what it lacks')).length, 1)
  const { body } = await app.inject('/metrics')
  t.match(body, /^llm_gateway_ledger_unshipped_records 3$/m)
  t.match(body, /^llm_gateway_ledger_lag_seconds 1\.5$/m)
})

t.test('a budget that a recovery brought to its share is told by whoever listens, now or later', async (t) => {
  const path = t.testdir({})
  const killed = await openState({ engine: 'lmdb', path })
  const groupBuckets = [{ id: 'tokens total UTC ', unit: 'tokens', amount: 100, endsAt: null }] as const
  const parties = { group: 'all', groupLimits: { balance: 1_000 }, groupBuckets, key: 'one', keyLimits: {} }
  for (const id of ['a', 'b']) await killed.balances.hold({ ...parties, id, requests: 1, tokens: 10, floor: 0 })
  const record = {
    key: 'one',
    group: 'all',
    protocol: 'messages',
    model: 'm',
    outcome: 'ok',
    late: [],
    time: Date.now(),
    ...noTokens,
    input: 1,
  } as const
  await killed.ledger.append({ ...record, id: 'a', charged: 85 })
  const state = await openState({ engine: 'lmdb', path })
  await state.recovered
  const events: BudgetEvent[] = []
  const upstream = await startUpstream(t)
  const limits = { balances: state.balances, ledger: state.ledger, onBudget: (event: BudgetEvent) => { events.push(event) } }
  const first = await startGateway(t, upstream.url, { limits })
  await first.app.ready()
  t.match(events, [{ group: 'all', key: null, period: 'total', percent: 80 }])
  const second = await startGateway(t, upstream.url, { limits })
  await second.app.ready()
  await first.app.close()
  t.equal(events.length, 1, 'once')
  await second.app.close()
  await state.close()
  await killed.close()
})
