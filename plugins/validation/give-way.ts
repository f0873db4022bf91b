/** When cores are short, the event loop, which all callers wait for, must come before a check that one caller waits for. */
import { getPriority, setPriority } from 'node:os'
import { isMainThread } from 'node:worker_threads'

/** Threads with the default niceness have about ten times the weight. */
const step = 10
const lowest = 19

interface System {
  readonly platform: string
  readonly isMainThread: boolean
  readonly getPriority: () => number
  readonly setPriority: (niceness: number) => void
}

/**
 * Lowers the priority of the calling thread within its process. Only on Linux: elsewhere the whole process would be affected
 * (setpriority(2), "C library/kernel differences"). If a sandbox forbids it, nothing changes.
 */
export function giveWay ({ platform, isMainThread, getPriority, setPriority }: System): void {
  if (platform !== 'linux' || isMainThread) return
  try {
    // Relative to the process: an operator may have lowered its priority.
    setPriority(Math.min(lowest, getPriority() + step))
  } catch {}
}

export const system: System = { platform: process.platform, isMainThread, getPriority, setPriority }
