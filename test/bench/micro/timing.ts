/** Processor time of one call, in nanoseconds: the median of several runs, the two sides by turns. */
import { median } from '../stats.js'

export interface Measured {
  readonly part: string
  readonly on: string
  readonly ns: number
  /** What somebody would write instead, and what that costs. */
  readonly instead: string
  readonly insteadNs: number
  readonly ratio: number
}

/** Gets the number of the call, so that parts can be given something else each time and nothing is hoisted out of the loop. */
type Call = (at: number) => unknown

/** Every result goes through here, so that no call is optimized away. */
const results: unknown[] = Array.from({ length: 64 }, () => null)

function runNs (calls: number, call: Call): number {
  const before = process.cpuUsage()
  for (let at = 0; at < calls; at++) results[at & 63] = call(at)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / calls * 1000
}

/** So many calls that a run takes about 20 ms, found by doubling. The first call does what is done once. */
function enoughCalls (call: Call): number {
  call(0)
  let calls = 1
  while (runNs(calls, call) * calls < 1e7 && calls < 2 ** 22) calls *= 2
  return calls * 2
}

const runs = 15

/** Processor time of one call alone. */
export function nanoseconds (call: Call): number {
  const calls = enoughCalls(call)
  return median(Array.from({ length: runs }, () => runNs(calls, call)).slice(3))
}

export function measure (part: string, on: string, call: Call, instead: string, other: Call): Measured {
  const calls = enoughCalls(call)
  const otherCalls = enoughCalls(other)
  const found = Array.from({ length: runs }, () => ({ ns: runNs(calls, call), insteadNs: runNs(otherCalls, other) })).slice(3)
  return {
    part,
    on,
    ns: median(found.map(({ ns }) => ns)),
    instead,
    insteadNs: median(found.map(({ insteadNs }) => insteadNs)),
    ratio: median(found.map(({ ns, insteadNs }) => ns / insteadNs)),
  }
}
