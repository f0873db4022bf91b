import type { LedgerFile } from './read.js'

/**
 * Files older than `keepMs`. A time without any record counts as `longestPauseMs` at most: a clock that was set a year ahead makes files
 * older by no more than that. So the files of a gateway without traffic are kept for longer.
 */
export function filesBeyond (keepMs: number, files: readonly LedgerFile[], now: number, longestPauseMs: number): LedgerFile[] {
  let ageMs = 0
  let next = now
  return files.toSorted((one, other) => other.endedAt - one.endedAt).filter(({ endedAt }) => {
    // Records that are dated in the future make nothing of the present older.
    if (endedAt <= now && next > now) {
      ageMs = 0
      next = now
    }
    ageMs += Math.min(Math.max(0, next - endedAt), longestPauseMs)
    next = endedAt
    return ageMs >= keepMs
  })
}
