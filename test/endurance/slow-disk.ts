/** The disk stands still for a while, again and again: whoever waits for it waits, and nobody else. */
import { spawnSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { startProvider } from './provider.js'
import { eventually, launchGateway, ledgerIn, residentMb, temporaryFolder, type Report } from './processes.js'
import { failuresOf, steadyCallers, timesOf } from './steady-callers.js'

export interface SlowDisk {
  readonly stallMs: number
  readonly stalls: number
  readonly quietMs: number
  readonly everyMs: number
  readonly maxAddedMs: number
}

const betweenMs = 1_000
const mostGrowthMb = 64

export async function slowDisk ({ stallMs, stalls, quietMs, everyMs, maxAddedMs }: SlowDisk): Promise<Report> {
  const folder = temporaryFolder()
  const library = join(folder.path, 'stalling-disk.so')
  const stall = join(folder.path, 'stall')
  const source = new URL('stalling-disk.c', import.meta.url).pathname
  if (spawnSync('cc', ['-shared', '-fPIC', '-o', library, source, '-ldl']).status !== 0) {
    folder.remove()
    return { violations: [], slow: [], skipped: 'there is no C compiler' }
  }
  const provider = await startProvider({ delayMs: () => 5 })
  const limits = { balance: 1e12, concurrency: 10_000 }
  const gateway = await launchGateway(folder.path, {
    upstreams: { main: { url: provider.url, credential: 'provider-key' } },
    groups: { limited: { protocols: ['chat_completions'], limits }, free: { protocols: ['chat_completions'] } },
    keys: [{ id: 'limited', group: 'limited', secret: 'key-limited' }, { id: 'free', group: 'free', secret: 'key-free' }],
    state: { engine: 'lmdb', path: './data' },
    overload: false,
  }, 0, { LD_PRELOAD: library, STALL_FILE: stall })
  const callers = steadyCallers(gateway.origin, { limited: 'key-limited', free: 'key-free' }, everyMs)
  await pause(1_000)
  const from = performance.now()
  const before = residentMb(gateway.pid)
  await pause(quietMs)
  const stalledAt = performance.now()
  for (let i = 0; i < stalls; i += 1) {
    writeFileSync(stall, '')
    await pause(stallMs)
    rmSync(stall)
    await pause(betweenMs)
  }
  const overAt = performance.now()
  const grownMb = residentMb(gateway.pid) - before
  const answers = await callers.end()
  const whole = Object.values(answers).flat().filter((answer) => answer.whole).length
  const violations = Object.entries(answers).flatMap(([group, own]) => failuresOf(group, own))
  const isKept = await eventually(async () => (await ledgerIn(join(folder.path, 'data', 'ledger'))).records.length === whole)
  if (!isKept) violations.push(`the ledger has not ${whole} records`)
  if (grownMb > mostGrowthMb) violations.push(`it took ${grownMb} MB more`)
  const times = Object.entries(answers).map(([group, own]) => [
    group, { quiet: timesOf(own, from, stalledAt), stalled: timesOf(own, stalledAt, overAt) },
  ] as const)
  const slow = times.filter(([, { quiet, stalled }]) => stalled.p99 > quiet.p99 + maxAddedMs)
    .map(([group, { quiet, stalled }]) => `${group}: p99 ${stalled.p99} ms while the disk stands still, ${quiet.p99} before`)
  await gateway.kill('SIGTERM')
  await provider.close()
  folder.remove()
  return { violations, slow, stallMs, stalls, grownMb, ...Object.fromEntries(times) }
}
