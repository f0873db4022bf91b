/** How long work that nobody waits for may wait for other work, in milliseconds. */
const laterMs = 5

interface DrainTimer {
  /** Drains at the end of this turn of the event loop. */
  readonly soon: () => void
  /** Drains with the next turn that somebody waits for, or after a few milliseconds. */
  readonly later: () => void
}

/** Calls `drain` once for all that was collected meanwhile. */
export function drainTimer (drain: () => void): DrainTimer {
  let isDue = false
  let timer: NodeJS.Timeout | undefined
  const end = (): void => {
    timer = undefined
    isDue = false
    drain()
  }
  return {
    soon: () => {
      if (isDue) return
      isDue = true
      clearTimeout(timer)
      setImmediate(end)
    },
    later: () => { if (!isDue) timer ??= setTimeout(end, laterMs) },
  }
}
