/** A timer's value in whole milliseconds; null for none, and for more than 24 days, for which Node's timers fire at once. */
export function timerMs (ms: number): number | null {
  return ms < 2 ** 31 - 1 ? Math.ceil(ms) : null
}

/** Rejects if the answer takes longer than `ms`; a later one is dropped. The timer does not keep the process alive. */
export async function withTimeout<T> (ms: number, answer: Promise<T>): Promise<T> {
  const longestMs = timerMs(ms)
  if (longestMs === null) return await answer
  return await new Promise<T>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no answer within ${longestMs} ms`)), longestMs).unref()
    answer.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
