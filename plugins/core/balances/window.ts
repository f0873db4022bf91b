/**
 * Requests and tokens of the last minute, in whole seconds. An entry counts until 60 full seconds have passed, so that
 * no span of 60 seconds ever holds more than its limit. Sparse and oldest first: an idle party costs nothing.
 */
interface WindowEntry {
  readonly second: number
  requests: number
  tokens: number
}

export interface Window {
  entries: WindowEntry[]
  requests: number
  tokens: number
}

/** The current second and the 60 before it. */
export const windowSeconds = 61

export function secondOf (ms: number): number {
  return Math.floor(ms / 1_000)
}

export function newWindow (): Window {
  return { entries: [], requests: 0, tokens: 0 }
}

/** Drops entries that are older than the window, and all if they are ahead by more: the clock was set back, and they would never leave. */
export function advance (window: Window, second: number): void {
  const oldest = window.entries[0]
  const isAhead = Number(window.entries.at(-1)?.second) >= second + windowSeconds
  if (!isAhead && (oldest === undefined || oldest.second > second - windowSeconds)) return
  window.entries = isAhead ? [] : window.entries.filter((entry) => entry.second > second - windowSeconds)
  window.requests = 0
  window.tokens = 0
  for (const { requests, tokens } of window.entries) {
    window.requests += requests
    window.tokens += tokens
  }
}

/** Counts at `second`, or at the newest entry if another process's clock is ahead. Returns the second used. */
export function count (window: Window, second: number, requests: number, tokens: number): number {
  window.requests += requests
  window.tokens += tokens
  const newest = window.entries.at(-1)
  if (newest === undefined || newest.second < second) {
    window.entries.push({ second, requests, tokens })
    return second
  }
  newest.requests += requests
  newest.tokens += tokens
  return newest.second
}

/**
 * Replaces estimated tokens by real ones in the second in which they were counted. If that has left the window, only what
 * exceeds the estimate is counted, now: a token is never counted in two minutes.
 */
export function correct (window: Window, at: number, now: number, difference: number): void {
  // From the end: most requests are settled within the seconds after they were counted.
  const entry = window.entries.findLast(({ second }) => second === at)
  if (entry === undefined) {
    if (difference > 0) count(window, now, 0, difference)
    return
  }
  entry.tokens += difference
  window.tokens += difference
}

/** Milliseconds until `amount` of `kind` has left the window; a whole window if it never held as much. */
export function waitMs (window: Window, kind: 'requests' | 'tokens', amount: number, nowMs: number): number {
  let freed = 0
  for (const entry of window.entries) {
    freed += entry[kind]
    if (freed >= amount) return (entry.second + windowSeconds) * 1_000 - nowMs
  }
  return windowSeconds * 1_000
}
