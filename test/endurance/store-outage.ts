/** Redis is killed under steady load, is away for a while, and comes back. */
import { setTimeout as pause } from 'node:timers/promises'
import { floorTokens, inParallel, type Answer } from './caller.js'
import { quantile, sum, type Report } from './processes.js'
import { StoreWorld } from './store-world.js'

const maxTokens = 64
/** What one call holds and uses. */
const callTokens = floorTokens + maxTokens
const leasePercent = 50

export interface StoreOutage {
  readonly processes: number
  readonly awayMs: number
  /** Between two requests of each group. */
  readonly everyMs: number
  readonly commandTimeoutMs: number
}

export async function storeOutage ({ processes, awayMs, everyMs, commandTimeoutMs }: StoreOutage): Promise<Report> {
  const few = 40 + processes
  const world = await StoreWorld.open({
    processes,
    commandTimeoutMs,
    holdTtlMs: 1_500,
    leasePercent,
    keepsAll: true,
    usage: (_, most) => [floorTokens, most],
    groups: {
      local: { onStoreFailure: 'local', limits: { balance: 1e12, concurrency: 10_000 } },
      closed: { onStoreFailure: 'closed', limits: { balance: 1e12 } },
      small: { onStoreFailure: 'local', limits: { balance: few * callTokens } },
    },
  })
  const violations: string[] = []
  await world.warm()
  while ((await world.state.balances.read('small')).held > 0) await pause(10)
  const over = new AbortController()
  const steady = { local: world.steady('local', everyMs, over.signal), closed: world.steady('closed', everyMs, over.signal) }
  await pause(500)

  await world.server.kill()
  const killedAt = performance.now()
  // Each process has seen what it left in its own turn: `few` less the calls of the ones before and its own.
  const leases = Array.from({ length: processes }, (_, i) => Math.floor((few - 1 - i) * callTokens * leasePercent / 100))
  const small = (await inParallel(processes * few, 8, async (i) => await world.chat('small', i % processes))).filter(
    ({ status }) => status === 200
  )
  await pause(Math.max(0, killedAt + awayMs - performance.now()))
  const stoppedAt = performance.now()
  await world.server.start()
  const backAt = performance.now()
  const back = await Promise.all(world.gateways.map(async (_, i) => await recovery(world, i, backAt)))
  await pause(1_000)
  over.abort()
  const [local, closed] = [await steady.local, await steady.closed]

  const failed = local.filter(({ status, whole }) => status !== 200 || !whole)
  for (const { status, error } of failed.slice(0, 5)) violations.push(`local: ${status} ${error}`)
  const slices = sum(leases.map((lease) => Math.floor(lease / callTokens)))
  if (small.length !== slices) violations.push(`${small.length} calls were spent of leases for ${slices}`)
  const { spent } = await world.state.balances.read('small')
  const inside = between(closed, killedAt, stoppedAt)
  violations.push(...refusals(closed), ...await world.reconcile())
  const overrun = Math.max(0, (await world.state.balances.read('small')).spent - few * callTokens)
  if (overrun > sum(leases)) violations.push(`overrun ${overrun}, leases ${sum(leases)}`)
  await world.close()
  const closedMs = inside.map(({ ms }) => ms)
  const slow = [
    ...closedMs.filter((ms) => ms > 100).map((ms) => `a refusal took ${Math.round(ms)} ms`),
    ...back.filter((ms) => ms > 1_000).map((ms) => `a gateway was back after ${Math.round(ms)} ms`),
  ]
  return {
    violations,
    slow,
    processes,
    awayMs: Math.round(stoppedAt - killedAt),
    local: {
      requests: local.length,
      whileAway: between(local, killedAt, stoppedAt).length,
      failed: failed.length,
      p99Ms: quantile(local.map(({ ms }) => ms), 0.99),
    },
    closed: {
      whileAway: inside.length,
      refused503: inside.filter(({ status }) => status === 503).length,
      p50Ms: quantile(closedMs, 0.5),
      maxMs: quantile(closedMs, 1),
    },
    leases: { calls: slices, served: small.length, tokens: sum(leases), overrun, spentAtReturn: spent },
    recoveredMs: back.map(Math.round),
  }
}

function between (answers: readonly Answer[], from: number, to: number): Answer[] {
  return answers.filter(({ startedAt }) => startedAt >= from && startedAt < to)
}

/** Whatever is not served says when to come again, and never that the key is wrong. */
export function refusals (answers: readonly Answer[]): string[] {
  return answers.filter(({ status, headers }) => status !== 200 && (status !== 503 || headers['retry-after'] === undefined))
    .map(({ status, error }) => `closed: ${status} ${error}`)
}

/** How long after `since` a gateway serves a group that needs the store. */
export async function recovery (world: StoreWorld, gateway: number, since: number): Promise<number> {
  while ((await world.chat('closed', gateway)).status !== 200) await pause(5)
  return performance.now() - since
}
