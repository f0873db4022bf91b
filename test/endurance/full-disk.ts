/** The disk is full for a while: requests go on, the metric tells, and every record is kept and charged once there is room again. */
import { spawnSync } from 'node:child_process'
import { setTimeout as pause } from 'node:timers/promises'
import { hasRedis } from '../state/redis/server.js'
import { quantile, residentMb, sum, type Report } from './processes.js'
import { StoreWorld } from './store-world.js'

export interface FullDisk {
  readonly fullMs: number
  readonly everyMs: number
  readonly holdTtlMs: number
}

const mostGrowthMb = 64

export async function fullDisk ({ fullMs, everyMs, holdTtlMs }: FullDisk): Promise<Report> {
  if (!hasRedis || spawnSync('prlimit', ['--version']).status !== 0) {
    return { violations: [], slow: [], skipped: 'redis-server or prlimit is not installed' }
  }
  // Limits are kept elsewhere, so that it is the ledger alone that has no room.
  const world = await StoreWorld.open({
    processes: 1,
    commandTimeoutMs: 2_000,
    holdTtlMs,
    groups: { closed: { onStoreFailure: 'closed', limits: { balance: 1e12, concurrency: 10_000 } } },
  })
  const [gateway] = world.gateways
  const { pid = 0, origin = '' } = gateway ?? {}
  const mayWrite = (bytes: string): void => { spawnSync('prlimit', ['--pid', String(pid), `--fsize=${bytes}:`]) }
  await world.warm()
  const over = new AbortController()
  const asked = world.steady('closed', everyMs, over.signal)
  await pause(1_000)
  const before = residentMb(pid)
  const fullAt = performance.now()
  mayWrite('4096')
  await pause(fullMs)
  const metrics = await (await fetch(`${origin}/metrics`)).text()
  const grownMb = residentMb(pid) - before
  mayWrite('unlimited')
  const backAt = performance.now()
  await pause(1_500)
  over.abort()
  const answers = await asked
  const failures = sum([...metrics.matchAll(/^llm_gateway_ledger_write_failures_total (\d+)$/gm)].map(([, count]) => Number(count)))
  const violations = answers.filter(({ status, whole }) => status !== 200 || !whole)
    .slice(0, 5)
    .map(({ status, error }) => `${status} ${error}`)
  if (failures === 0) violations.push('no metric tells of it')
  if (grownMb > mostGrowthMb) violations.push(`it took ${grownMb} MB more`)
  violations.push(...await world.reconcile())
  await world.close()
  const times = (from: number, to: number): object => {
    const ms = answers.filter(({ startedAt }) => startedAt >= from && startedAt < to).map((answer) => answer.ms)
    return { requests: ms.length, p50: quantile(ms, 0.5), p99: quantile(ms, 0.99) }
  }
  return {
    violations, slow: [], fullMs, failures, grownMb, before: times(0, fullAt), full: times(fullAt, backAt), after: times(backAt, Infinity),
  }
}
