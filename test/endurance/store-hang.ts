/** Redis hangs: its process stands still, its connections stay open, and it goes on later as if nothing had been. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Answer } from './caller.js'
import { quantile, type Report } from './processes.js'
import { recovery, refusals } from './store-outage.js'
import { StoreWorld } from './store-world.js'

export interface StoreHang {
  readonly processes: number
  readonly hangsMs: number
  readonly everyMs: number
  readonly commandTimeoutMs: number
}

export async function storeHang ({ processes, hangsMs, everyMs, commandTimeoutMs }: StoreHang): Promise<Report> {
  const world = await StoreWorld.open({
    processes,
    commandTimeoutMs,
    holdTtlMs: 1_500,
    groups: {
      local: { onStoreFailure: 'local', limits: { balance: 1e12, concurrency: 10_000 } },
      closed: { onStoreFailure: 'closed', limits: { balance: 1e12, concurrency: 10_000 } },
    },
  })
  const violations: string[] = []
  await world.warm()
  const over = new AbortController()
  const steady = { local: world.steady('local', everyMs, over.signal), closed: world.steady('closed', everyMs, over.signal) }
  await pause(1_000)

  world.server.signal('SIGSTOP')
  const hungAt = performance.now()
  await pause(hangsMs)
  world.server.signal('SIGCONT')
  const backAt = performance.now()
  const back = await Promise.all(world.gateways.map(async (_, i) => await recovery(world, i, backAt)))
  await pause(1_000)
  over.abort()
  const [local, closed] = [await steady.local, await steady.closed]

  for (const { status, error } of local.filter(({ status, whole }) => status !== 200 || !whole).slice(0, 5)) {
    violations.push(`local: ${status} ${error}`)
  }
  violations.push(...refusals(closed), ...await world.reconcile())
  await world.close()
  const during = closed.filter(({ startedAt }) => startedAt >= hungAt && startedAt < backAt)
  // Until a process knows, each request waits for the store; afterwards none does.
  const first = during.filter(({ startedAt }) => startedAt < hungAt + commandTimeoutMs + everyMs * processes)
  const later = during.filter((answer) => !first.includes(answer))
  const normal = local.filter(({ startedAt, ms }) => startedAt + ms < hungAt)
  const slow = [
    ...first.filter(({ ms }) => ms > commandTimeoutMs + 50).map(({ ms }) => `a first refusal took ${Math.round(ms)} ms`),
    ...later.filter(({ ms }) => ms > 50).map(({ ms }) => `a later refusal took ${Math.round(ms)} ms`),
    ...back.filter((ms) => ms > 1_000).map((ms) => `a gateway was back after ${Math.round(ms)} ms`),
  ]
  return {
    violations,
    slow,
    processes,
    hangsMs: Math.round(backAt - hungAt),
    commandTimeoutMs,
    localMs: {
      before: times(normal),
      first: times(local.filter((answer) => within(answer, hungAt, hungAt + commandTimeoutMs))),
      later: times(local.filter((answer) => within(answer, hungAt + 2 * commandTimeoutMs, backAt))),
    },
    refusedMs: { first: times(first), later: times(later) },
    recoveredMs: back.map(Math.round),
  }
}

function within ({ startedAt }: Answer, from: number, to: number): boolean {
  return startedAt >= from && startedAt < to
}

function times (answers: readonly Answer[]): object {
  const ms = answers.map((answer) => answer.ms)
  return { requests: ms.length, p50: quantile(ms, 0.5), max: quantile(ms, 1) }
}
