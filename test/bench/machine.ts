/** What the run happens on, and which core belongs to whom. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os'

function has (program: string, argument: string): boolean {
  return spawnSync(program, [argument], { stdio: 'ignore' }).status === 0
}

const pinned = process.platform === 'linux' && availableParallelism() >= 2 && has('taskset', '--version')

/** The program under test has a core to itself; the driver and the mock upstream share the other one. */
export const placement: { readonly server: number | null, readonly driver: number | null } = pinned
  ? { server: 0, driver: 1 }
  : { server: null, driver: null }

export const hasNginx = process.platform === 'linux' && has('nginx', '-v')

export function pinDriver (): void {
  if (placement.driver !== null) spawnSync('taskset', ['-acp', String(placement.driver), String(process.pid)], { stdio: 'ignore' })
}

/** Files that one process may open: two for each stream that a gateway holds. */
export function maxOpenFiles (): number {
  if (process.platform !== 'linux') return 1024
  return Number(/Max open files +(\d+)/.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? 1024)
}

/**
 * Processor time that was spent on the whole machine since it started, microseconds, time that the host took included;
 * in steps of 10 ms. NaN where the kernel does not tell.
 */
export function busyUs (): number {
  if (process.platform !== 'linux') return NaN
  const [, user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] =
    readFileSync('/proc/stat', 'utf8').split('\n', 1)[0]?.split(/ +/).map(Number) ?? []
  return (user + nice + system + irq + softirq + steal) * 10_000
}

export interface Machine {
  readonly processor: string
  readonly cores: number
  readonly memoryGb: number
  readonly node: string
  readonly platform: string
  readonly pinned: boolean
  readonly loadAverage: number
}

/** Before the driver ties itself to one core and sees no other. */
const cores = availableParallelism()

export function describeMachine (): Machine {
  return {
    processor: cpus()[0]?.model ?? 'unknown',
    cores,
    memoryGb: Math.round(totalmem() / 1e9),
    node: process.version,
    platform: `${process.platform} ${process.arch}`,
    pinned,
    loadAverage: loadavg()[0] ?? 0,
  }
}
