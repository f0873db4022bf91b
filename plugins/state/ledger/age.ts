import type { LedgerFile } from './read.js'

/**
 * The files that are older than `keepMs`. A time without any record counts as `longestPauseMs` at most: a clock that was set a year ahead
 * makes all files that much older and no more, whatever else is written by it. So a gateway that nobody asks keeps its files for longer.
 */
export function filesBeyond (keepMs: number, files: readonly LedgerFile[], now: number, longestPauseMs: number): LedgerFile[] {
  let ageMs = 0
  let next = now
  return files.toSorted((one, other) => other.endedAt - one.endedAt).filter(({ endedAt }) => {
    // What is of a time to come makes nothing of the present older.
    const from = endedAt <= now ? Math.min(next, now) : next
    ageMs += Math.min(Math.max(0, from - endedAt), longestPauseMs)
    next = endedAt
    return ageMs >= keepMs
  })
}
