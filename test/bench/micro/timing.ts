/** Processor time of one call, in nanoseconds: the undisturbed quarter of several runs. */
import { quantile } from '../stats.js'

export interface Measured {
  readonly part: string
  readonly on: string
  readonly ns: number
  /** What somebody would write instead, and what that costs. */
  readonly instead: string
  readonly insteadNs: number
}

/** Results go here, so that no call is optimized away. */
const nothing = Symbol('nothing')
let sink: unknown = nothing

function runNs (calls: number, call: () => unknown): number {
  const before = process.cpuUsage()
  for (let done = 0; done < calls; done++) sink = call()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / calls * 1000
}

export function nanoseconds (call: () => unknown): number {
  const calls = Math.max(1, Math.min(100_000, Math.round(2e7 / Math.max(100, runNs(20, call)))))
  const runs = Array.from({ length: 11 }, () => runNs(calls, call))
  return sink === nothing ? NaN : quantile(runs, 0.25)
}

export function measure (part: string, on: string, call: () => unknown, instead: string, other: () => unknown): Measured {
  return { part, on, ns: nanoseconds(call), instead, insteadNs: nanoseconds(other) }
}
