/** 24 days: Node's timers fire at once if they are set to more. */
export const longestTimerMs = 2 ** 31 - 1

/** A timer's value in whole milliseconds; null for none, and for more than the longest. */
export function timerMs (ms: number): number | null {
  return ms < longestTimerMs ? Math.ceil(ms) : null
}

/** Rejects if the answer takes longer than `ms`; a later one is dropped. The timer does not keep the process alive. */
export async function withTimeout<T> (ms: number, answer: Promise<T>): Promise<T> {
  const wholeMs = timerMs(ms)
  if (wholeMs === null) return await answer
  return await new Promise<T>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no answer within ${wholeMs} ms`)), wholeMs).unref()
    answer.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
