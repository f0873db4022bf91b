import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { openKeys, openState } from '../../plugins/state/index.js'
import { loadPeer } from '../../plugins/state/peer.js'
import { recover } from '../../plugins/state/ledger/recover.js'
import { maxRefusals, StoreDownError } from '../../plugins/core/balances/store-down.js'
import { RecoveredSettlements } from '../../plugins/state/ledger/recovered-settlements.js'
import { startRedis, withoutRedis } from './redis/server.js'
import { memoryBalances, memoryLedger, type Balances, type LedgerRecord, type StateConfig } from '../../plugins/state/index.js'
import { noTokens } from '../metrics/requests.js'

const leaves = { ...noTokens, input: 3, output: 4 }

function record (id: string, given: Partial<LedgerRecord> = {}): LedgerRecord {
  return {
    id,
    time: Date.now(),
    key: 'ci',
    group: 'chat',
    protocol: 'messages',
    model: 'm',
    outcome: 'ok',
    charged: 7,
    late: [],
    ...leaves,
    ...given,
  }
}

t.test('an engine that there is not', async (t) => {
  const config: StateConfig = JSON.parse('{ "engine": "toString" }')
  await t.rejects(openState(config), { code: 'LLM_GATEWAY_OPTION', message: /state\.engine must be memory, lmdb or redis/ })
})

t.test('an address is required', async (t) => {
  await t.rejects(openState(Object({ engine: 'redis' })), { code: 'LLM_GATEWAY_OPTION', message: /state\.url is required/ })
})

t.test('a wrong or misspelled option opens nothing, and is named', async (t) => {
  const cases: [config: object, message: string][] = [
    [{ engine: 'lmdb', folder: './somewhere' }, 'option state.folder is not known'],
    [{ engine: 'lmdb', path: '' }, 'option state.path must be a string'],
    [{ engine: 'memory', holdTtlMs: '60' }, 'option state.holdTtlMs must be a whole number of 1 to 2147483647'],
    [{ engine: 'memory', ledger: { keep: 5 } }, 'option state.ledger.keep is not known'],
  ]
  for (const [config, message] of cases) await t.rejects(openState(Object(config)), { code: 'LLM_GATEWAY_OPTION', message }, message)
})

t.test('memory says what it loses, the others need not', async (t) => {
  const memory = await openState({ engine: 'memory' })
  t.match(memory.notice, /lost when the process ends/)
  t.equal(await memory.recovered, 0)
  await memory.close()
  const lmdb = await openState({ engine: 'lmdb', path: t.testdir({}) })
  t.equal(lmdb.notice, null)
  await lmdb.close()
})

t.test('a package that is missing is named with what needs it', async (t) => {
  t.equal(await loadPeer('state.engine lmdb', 'lmdb', async () => 7), 7)
  const missing = async (): Promise<never> => { throw new Error('Cannot find package') }
  await t.rejects(loadPeer('state.engine lmdb', 'lmdb', missing), {
    code: 'LLM_GATEWAY_MISSING_PEER', message: /state\.engine lmdb needs .* npm install lmdb/,
  })
})

t.test('what a killed process recorded is settled by the next one', async (t) => {
  const path = t.testdir({})
  const killed = await openState({ engine: 'lmdb', path })
  const limits = { group: 'chat', groupLimits: { balance: 100 }, key: 'ci', keyLimits: {} }
  for (const id of ['a', 'b']) await killed.balances.hold({ id, ...limits, requests: 1, tokens: 40, floor: 10 })
  await killed.ledger.append(record('a'))
  const command = await openKeys({ engine: 'lmdb', path })
  t.equal(await command.keys.read('nobody'), null)
  await command.close()
  t.match(await killed.balances.read('chat'), { spent: 0, held: 80 }, 'not by a command that only reads keys')
  const next = await openState({ engine: 'lmdb', path })
  t.equal(await next.recovered, 1)
  t.match(await next.balances.read('chat'), { spent: 7, held: 40, active: 1 })
  await next.close()
  await killed.close()
})

t.test('who opens keys alone makes no ledger, and needs no room for one', { skip: withoutRedis }, async (t) => {
  const path = t.testdir({ file: '' })
  const server = await startRedis()
  t.teardown(server.stop)
  for (const config of [
    { engine: 'lmdb', path },
    { engine: 'redis', url: server.url, path: join(path, 'file', 'data'), commandTimeoutMs: 5_000 },
  ] as const) {
    const { keys, close } = await openKeys(config)
    t.equal(await keys.read('nobody'), null, config.engine)
    await close()
  }
  t.notOk(existsSync(join(path, 'ledger')))
})

t.test('records are settled in batches, those of nobody are not', async (t) => {
  const balances = memoryBalances()
  const records = Array.from({ length: 250 }, (_, i) => record(`r${i}`, { late: ['group'], ...i === 7 && { key: null } }))
  const ledger = { ...memoryLedger(), unsettled: async function * () { yield * records } }
  t.equal(await recover(ledger, balances, new AbortController().signal, new RecoveredSettlements()), 250)
  t.match(await balances.read('chat'), { spent: 249 * 7 })
})

t.test('a record says which of those that it charges late have a balance', async (t) => {
  const balances = memoryBalances()
  const given = record('a', { late: ['key', 'group'], lateBalances: ['group'] })
  const ledger = { ...memoryLedger(), unsettled: async function * () { yield given } }
  await recover(ledger, balances, new AbortController().signal, new RecoveredSettlements())
  t.match([await balances.read('chat', String(given.key)), await balances.read('chat')], [{ spent: 0 }, { spent: 7 }])
})

t.test('what a request cost is settled again, too, and in the budgets of those who are charged late', async (t) => {
  const balances = memoryBalances()
  const bucket = { id: 'cost total', unit: 'cost', amount: 100, endsAt: null } as const
  const parties = { group: 'chat', groupLimits: { balance: 100 }, groupBuckets: [bucket], key: 'ci', keyLimits: {} }
  await balances.hold({ id: 'held', ...parties, requests: 1, tokens: 40, cost: 40, floor: 10 })
  const late = { late: ['key'], lateBuckets: [{ ...bucket, scope: 'key' }] } as const
  const ledger = {
    ...memoryLedger(),
    unsettled: async function * () {
      yield * [record('held', { chargedCost: 9 }), record('late', { chargedCost: 5, ...late }), record('free', late)]
    },
  }
  await recover(ledger, balances, new AbortController().signal, new RecoveredSettlements())
  t.match(await balances.readBucket(bucket.id, 'chat'), { spent: 9, held: 0 })
  t.match(await balances.readBucket(bucket.id, 'chat', 'ci'), { spent: 5 })
})

t.test('a store that is away is asked again until it has every charge', async (t) => {
  const ledger = { ...memoryLedger(), unsettled: async function * () { yield * [record('a'), record('b')] } }
  const settled: string[] = []
  let asked = 0
  const settle: Balances['settle'] = async ({ id }) => {
    asked += 1
    if (asked < 5) throw new Error('away')
    settled.push(id)
  }
  const alive = setInterval(() => {}, 1_000)
  t.teardown(() => clearInterval(alive))
  t.equal(await recover(ledger, { ...memoryBalances(), settle }, new AbortController().signal, new RecoveredSettlements()), 2)
  t.same(settled.sort(), ['a', 'b'])
})

t.test('a store that stays away does not keep the process from its end', async (t) => {
  const ledger = { ...memoryLedger(), unsettled: async function * () { yield record('a') } }
  const settle = async (): Promise<void> => { throw new Error('away') }
  const closing = new AbortController()
  const recovered = recover(ledger, { ...memoryBalances(), settle }, closing.signal, new RecoveredSettlements())
  closing.abort()
  await t.rejects(recovered, { name: 'AbortError' })
})

t.test('many records that wait for a store make no warning about listeners', async (t) => {
  const warnings: unknown[] = []
  const onWarning = (warning: unknown): void => { warnings.push(warning) }
  process.on('warning', onWarning)
  t.teardown(() => process.off('warning', onWarning))
  const records = Array.from({ length: 20 }, (_, at) => record(`r${at}`))
  const ledger = { ...memoryLedger(), unsettled: async function * () { yield * records } }
  const settle = async (): Promise<void> => { throw new Error('away') }
  const closing = new AbortController()
  const recovered = recover(ledger, { ...memoryBalances(), settle }, closing.signal, new RecoveredSettlements())
  for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate)
  closing.abort()
  await t.rejects(recovered, { name: 'AbortError' })
  t.same(warnings, [])
})

t.test('an end that comes while the ledger is still read is told once, to who waits', async (t) => {
  const closing = new AbortController()
  const ledger = {
    ...memoryLedger(),
    unsettled: async function * () {
      yield record('a')
      closing.abort()
      await new Promise(setImmediate)
      yield record('b')
    },
  }
  const settle = async (): Promise<void> => { throw new Error('away') }
  await t.rejects(recover(ledger, { ...memoryBalances(), settle }, closing.signal, new RecoveredSettlements()), { name: 'AbortError' })
})

t.test('a record that the store refuses is told, and holds up none behind it; one that is away is waited for', async (t) => {
  const ledger = memoryLedger()
  const records = Array.from({ length: 250 }, (_, at) => record(`r${at}`))
  const settled: string[] = []
  let tries = 0
  let away = maxRefusals + 1
  const settle: Balances['settle'] = async ({ id }) => {
    if (id === 'r7') {
      tries += 1
      throw new StoreDownError('failed', { refused: true })
    }
    if (id === 'r8' && away > 0) {
      away -= 1
      throw new StoreDownError('does not answer')
    }
    settled.push(id)
  }
  const alive = setInterval(() => {}, 1_000)
  t.teardown(() => clearInterval(alive))
  const lost: unknown[] = []
  const unsettled = { ...ledger, unsettled: async function * () { yield * records } }
  t.equal(await recover(unsettled, { ...memoryBalances(), settle }, new AbortController().signal, {
    onSettled: () => {}, onLost: ({ id }, error) => lost.push([id, error]),
  }), 250)
  t.equal(settled.length, 249)
  t.ok(tries > 1, 'it may have been refused by chance')
  t.match(lost, [['r7', { refused: true }]])
})

t.test('what a recovery could not settle waits for a listener, too', async (t) => {
  const recovered = new RecoveredSettlements()
  const settlement = { id: 'a', group: 'chat', key: 'ci', tokens: 1, late: [] }
  recovered.onLost(settlement, new Error('refused'))
  const told: unknown[] = []
  recovered.listen(() => {}, ({ id }, error) => told.push([id, error]))
  t.match(told, [['a', { message: 'refused' }]])
})

t.test('what a recovery made budgets reach waits for a listener, and goes to the latest', async (t) => {
  const recovered = new RecoveredSettlements()
  const told: string[] = []
  const settlement = { id: 'a', group: 'chat', key: 'ci', tokens: 1, late: [] }
  const reached = [{ scope: 'group', bucket: 'tokens total UTC ', percent: 50 }] as const
  recovered.onSettled(settlement, undefined)
  recovered.onSettled(settlement, [])
  recovered.onSettled(settlement, reached)
  const lost = (): void => {}
  const endFirst = recovered.listen(() => told.push('first'), lost)
  t.same(told, ['first'])
  const endSecond = recovered.listen(() => told.push('second'), lost)
  endFirst()
  recovered.onSettled(settlement, reached)
  t.same(told, ['first', 'second'])
  endSecond()
  recovered.onSettled(settlement, reached)
  recovered.listen(() => told.push('third'), lost)
  t.same(told, ['first', 'second', 'third'])
})
