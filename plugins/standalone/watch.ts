import { unwatchFile, watchFile, type Stats } from 'node:fs'

/**
 * Calls back when the file has changed, also when another took its place: editors and mounted configuration maps swap
 * files, which a watcher of the file itself would lose. A file that is gone for the moment is no change. Returns what
 * ends it.
 */
export function watchConfig (file: string, intervalMs: number, changed: () => void): () => void {
  const look = (now: Stats, before: Stats): void => {
    if (now.mtimeMs !== 0 && now.mtimeMs !== before.mtimeMs) changed()
  }
  watchFile(file, { interval: intervalMs, persistent: false }, look)
  return () => unwatchFile(file, look)
}
