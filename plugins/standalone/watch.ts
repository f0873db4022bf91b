import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'

/** A file that is being written is empty, or half there, for a moment: its text counts once it stays for so long. */
const stayMs = 20

/**
 * Calls back when the text of the file has changed, also when another took its place: editors and mounted configuration
 * maps swap files, which a watcher of the file itself would lose. Told by the text and by nothing else: two writes within
 * one tick of the clock leave the same time, and may leave the same size. A file that is gone for the moment is no change.
 * Keeps no process alive. Returns what ends it. `others`: more files, whose change counts as one of this.
 */
export function watchConfig (
  file: string, intervalMs: number, changed: () => unknown, others: () => readonly string[] = () => []
): () => void {
  let seen = digestNow([file, ...others()])
  let ended = false
  const watch = async (): Promise<void> => {
    for (;;) {
      await pause(intervalMs, undefined, { ref: false })
      const now = await stableDigest([file, ...others()], seen)
      if (ended) return
      if (now === seen) continue
      seen = now
      changed()
    }
  }
  watch()
  return () => { ended = true }
}

/** As soon as two looks agree; the first one is compared with what was seen before. */
async function stableDigest (files: readonly string[], seen: string): Promise<string> {
  let before = seen
  for (;;) {
    const now = await Promise.all(files.map(async (file) => await readFile(file))).then(digestOf, () => seen)
    if (now === before) return now
    before = now
    await pause(stayMs, undefined, { ref: false })
  }
}

function digestNow (files: readonly string[]): string {
  try {
    return digestOf(files.map((file) => readFileSync(file)))
  } catch {
    return ''
  }
}

function digestOf (texts: readonly Buffer[]): string {
  const hash = createHash('sha256')
  for (const text of texts) hash.update(`${text.length}:`).update(text)
  return hash.digest('base64')
}
