/** What a timer can be set to; null for a longer time, such as 24 days, or none. */
export function timerMs (ms: number): number | null {
  return ms < 2 ** 31 ? Math.ceil(ms) : null
}

/** Rejects where the answer takes longer. */
export async function within<T> (longestMs: number, answer: Promise<T>): Promise<T> {
  const ms = timerMs(longestMs)
  if (ms === null) return await answer
  return await new Promise<T>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('no answer')), ms)
    answer.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
