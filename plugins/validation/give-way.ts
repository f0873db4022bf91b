/** Where cores are short, the loop, on which all callers wait, goes before a check that one waits for. */
import { getPriority, setPriority } from 'node:os'
import { isMainThread } from 'node:worker_threads'

/** What was not told to give way has about ten times the weight. */
const step = 10
const lowest = 19

export interface System {
  readonly platform: string
  readonly isMainThread: boolean
  readonly getPriority: () => number
  readonly setPriority: (niceness: number) => void
}

/**
 * Makes the thread that calls it give way to the others of its process. On Linux alone: elsewhere it would be the whole process that
 * does (setpriority(2), "C library/kernel differences"). Where a sandbox forbids it, all is as it was.
 */
export function giveWay ({ platform, isMainThread, getPriority, setPriority }: System): void {
  if (platform !== 'linux' || isMainThread) return
  try {
    // From what its process has: an operator may have lowered that.
    setPriority(Math.min(lowest, getPriority() + step))
  } catch {}
}

export const system: System = { platform: process.platform, isMainThread, getPriority, setPriority }
