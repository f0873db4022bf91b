/** kill -9 of a gateway in the middle of metered requests, round after round. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { openState, type LedgerRecord } from '../../plugins/state/index.js'
import { freePort } from '../helpers/free-port.js'
import type { PostgresServer } from '../state/postgres-server.js'
import { createCaller, floorTokens, inParallel, type Answer } from './caller.js'
import { eventually, launchGateway, ledgerIn, quantile, sum, temporaryFolder, type GatewayProcess, type Report } from './processes.js'
import { startProvider } from './provider.js'

const secret = 'sk-ledger-kills'
const atOnce = 64

export interface LedgerKills {
  readonly rounds: number
  /** Sent in each round; the kill comes after a random share of them was answered. */
  readonly requests: number
  readonly holdTtlMs: number
  /** Where records go, too: each is to be there once in the end. */
  readonly postgres?: PostgresServer | undefined
}

/**
 * A record is acknowledged once its `append` resolved (`acknowledge.js`); from then on it must be in the ledger, once, and
 * be charged. What the caller saw is later than its reply and earlier than the acknowledgement: replies of the last moments
 * before a kill, as many as the disk takes its time for, may have no record, and are charged the floor of their hold.
 */
export async function ledgerKills ({ rounds, requests, holdTtlMs, postgres }: LedgerKills): Promise<Report> {
  const folder = temporaryFolder()
  const ledger = join(folder.path, 'data', 'ledger')
  const provider = await startProvider({ delayMs: () => Math.random() * 4 })
  const withoutStore = {
    upstreams: { main: { url: provider.url, credential: 'provider-key' } },
    groups: { chat: { protocols: ['chat_completions'], limits: { balance: 1e12, concurrency: 10_000 } } },
    keys: [{ id: 'one', group: 'chat', secret }],
    state: { engine: 'lmdb', path: './data', holdTtlMs },
  }
  const usageStore = postgres && { usageStore: { url: postgres.url, intervalMs: 10 } }
  const config = { ...withoutStore, state: { ...withoutStore.state, ...usageStore } }
  const port = await freePort()
  const violations: string[] = []
  const restarts: number[] = []
  const cleanStarts: number[] = []
  const answers: Answer[] = []
  const acknowledged = new Set<string>()
  const recordedOf = new Map<string, number>()
  let damaged = 0
  let gateway = await launchGateway(folder.path, config, port)
  for (let round = 0; round < rounds; round += 1) {
    const since = Date.now()
    const caller = createCaller(atOnce)
    const killAfter = Math.floor(requests * (0.1 + 0.8 * Math.random()))
    const killed = { at: 0 }
    let count = 0
    await inParallel(requests, atOnce, async (i) => {
      if (killed.at > 0) return
      answers.push(await caller.call(gateway.origin, { secret, tag: `r${round}-${i}`, stream: i % 4 === 0 }))
      count += 1
      if (count !== killAfter) return
      killed.at = performance.now()
      await gateway.kill()
    })
    await caller.close()
    for (const id of gateway.acknowledged()) acknowledged.add(id)
    gateway = await launchGateway(folder.path, config, port)
    await serves(gateway, answers, `r${round}-again`)
    restarts.push(performance.now() - killed.at)
    cleanStarts.push(await cleanStartMs(withoutStore))
    const found = await ledgerIn(ledger, since)
    damaged = Math.max(damaged, found.damaged)
    for (const { id, charged } of found.records) {
      if (recordedOf.has(id) && recordedOf.get(id) !== charged) violations.push(`two records of ${id}`)
      recordedOf.set(id, charged)
    }
  }
  const state = await openState({ engine: 'lmdb', path: join(folder.path, 'data'), holdTtlMs })
  // Holds that expired before their records were read are charged their floor until then.
  await state.recovered
  // A request that was killed before its body was read holds a place and no tokens: it expires as the others do.
  const isQuiet = async (): Promise<boolean> => {
    const { held, active } = await state.balances.read('chat')
    return held === 0 && active === 0
  }
  if (!await eventually(isQuiet)) violations.push('something is still held')
  const { spent, active } = await state.balances.read('chat')
  const { records } = await ledgerIn(ledger)
  if (records.length !== new Set(records.map(({ id }) => id)).size) violations.push('a record is there twice')
  for (const id of gateway.acknowledged()) acknowledged.add(id)
  const recorded = new Map(records.map(({ id, charged }) => [id, charged]))
  const lost = [...acknowledged].filter((id) => !recorded.has(id))
  if (lost.length > 0) violations.push(`${lost.length} acknowledged records are lost`)
  for (const { id, tag, whole, status } of answers) {
    const charged = recorded.get(id)
    if (whole && status === 200 && charged !== undefined && charged !== provider.reported.get(tag)) {
      violations.push(`${tag}: charged ${charged}, reported ${provider.reported.get(tag)}`)
    }
  }

  // Whatever was running at a kill, on its way to the provider or back.
  const unrecorded = answers.length - recorded.size
  const inLedger = sum(recorded.values())
  const floors = (spent - inLedger) / floorTokens
  const unacknowledged = answers.filter(({ whole, status, id }) => whole && status === 200 && !recorded.has(id)).length
  if (active !== 0) violations.push(`${active} requests still run`)
  if (!Number.isInteger(floors) || floors < unacknowledged || floors > unrecorded) {
    violations.push(`spent ${spent}, in the ledger ${inLedger}: ${floors} floors of ${unrecorded} requests without a record, ` +
      `${unacknowledged} of them whole replies`)
  }
  await state.close()
  if (postgres !== undefined) violations.push(...await notShipped(postgres, records))
  await gateway.kill('SIGTERM')
  await provider.close()
  const cleanStart = quantile(cleanStarts, 0.5)
  // A start of the program is no work of the ledger's: what is judged is what it takes longer because of the kill.
  const repairs = restarts.map((ms) => ms - cleanStart)
  const slow = repairs.filter((ms) => ms >= 1_000).map((ms) => `a restart took ${Math.round(ms)} ms longer than a clean start`)
  if (unacknowledged > rounds * atOnce) slow.push(`${unacknowledged} whole replies without a record`)
  const files = readdirSync(ledger).length
  folder.remove()
  return {
    violations,
    slow,
    rounds,
    answered: answers.filter(({ whole, status }) => whole && status === 200).length,
    acknowledged: acknowledged.size,
    recorded: recorded.size,
    lost: lost.length,
    cutLines: damaged,
    repliesWithoutRecord: unacknowledged,
    expiredHoldsCharged: floors,
    files,
    restartMs: spreadOf(restarts),
    cleanStartMs: spreadOf(cleanStarts),
    /** What a restart takes longer than the middle one of the clean starts between them: a torn tail is repaired in it. */
    repairMs: spreadOf(repairs),
  }
}

function spreadOf (numbers: readonly number[]): object {
  return { p50: quantile(numbers, 0.5), p95: quantile(numbers, 0.95), max: quantile(numbers, 1) }
}

/** From the start of a gateway that finds an empty folder, with nothing to repair, until it has answered. */
async function cleanStartMs (config: object): Promise<number> {
  const folder = temporaryFolder()
  const startedAt = performance.now()
  const gateway = await launchGateway(folder.path, config)
  await serves(gateway, [], 'clean')
  const ms = performance.now() - startedAt
  await gateway.kill()
  folder.remove()
  return ms
}

/** In what the usage store differs from the ledger. */
async function notShipped (server: PostgresServer, records: readonly LedgerRecord[]): Promise<string[]> {
  const expected = { requests: records.length, charged: sum(records.map(({ charged }) => charged)) }
  const of = async (what: string, table: string): Promise<string> => {
    const [row] = await server.ask(`SELECT ${what}::int AS requests, sum(charged)::int AS charged FROM llm_gateway.${table}`)
    return JSON.stringify(row)
  }
  const wanted = JSON.stringify(expected)
  // What a killed process wrote is shipped by another one some seconds later.
  await eventually(async () => await of('count(*)', 'usage') === wanted)
  const found = [await of('count(*)', 'usage'), await of('sum(requests)', 'usage_quarters')]
  return found.filter((each) => each !== wanted).map((each) => `the usage store has ${each}, not ${wanted}`)
}

/** One real request, from a caller of its own. */
async function serves (gateway: GatewayProcess, answers: Answer[], tag: string): Promise<void> {
  const caller = createCaller(1)
  const answer = await caller.call(gateway.origin, { secret, tag })
  if (answer.status !== 200) throw new Error(`it answers ${answer.status}: ${answer.error}`)
  answers.push(answer)
  await caller.close()
  await pause(0)
}
