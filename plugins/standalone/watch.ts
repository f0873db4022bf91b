import { hash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { isUnfit, readPlainFile, readPlainFileNow } from '../core/config/plain-file.js'

/** A file that is being written is empty or incomplete for a moment: its text counts once it stays the same for so long. */
const stayMs = 20

/**
 * Calls back when the text of the file has changed, also when another file took its place: editors and mounted configuration maps swap
 * files, which a watcher of the file itself would miss. Only the text is compared: two writes within one tick of the clock leave the same
 * time, and may leave the same size. A file that is missing for the moment is no change. Does not keep the process alive. Returns a
 * function that ends it. `others`: more files, whose changes count, too.
 */
export function watchConfig (
  file: string, intervalMs: number, changed: () => unknown, others: () => readonly string[] = () => []
): () => void {
  const digests: Digests = new Map()
  let seen = digestNow([file, ...others()], digests)
  let ended = false
  const watch = async (): Promise<void> => {
    for (;;) {
      await pause(intervalMs, undefined, { ref: false })
      const now = await stableDigest([file, ...others()], seen, digests)
      if (ended) return
      if (now === seen) continue
      seen = now
      changed()
    }
  }
  watch()
  return () => { ended = true }
}

/** The digest of each file when it last existed: a missing one must not hide a change of the others. */
type Digests = Map<string, string>

/** Resolves as soon as two reads agree; the first one is compared with the digest seen before. */
async function stableDigest (files: readonly string[], seen: string, digests: Digests): Promise<string> {
  let before = seen
  for (;;) {
    await Promise.all(files.map(async (file) => {
      await readPlainFile(file).then((text) => digests.set(file, digestOf(text)), (error) => noteUnfit(file, error, digests))
    }))
    const now = togetherOf(files, digests)
    if (now === before) return now
    before = now
    await pause(stayMs, undefined, { ref: false })
  }
}

function digestNow (files: readonly string[], digests: Digests): string {
  for (const file of files) {
    try {
      digests.set(file, digestOf(readPlainFileNow(file)))
    } catch (error) {
      noteUnfit(file, error, digests)
    }
  }
  return togetherOf(files, digests)
}

/** The operator must learn that the file is not read. */
function noteUnfit (file: string, error: unknown, digests: Digests): void {
  if (isUnfit(error)) digests.set(file, String(error))
}

function togetherOf (files: readonly string[], digests: Digests): string {
  return files.map((file) => digests.get(file)).join()
}

function digestOf (text: string): string {
  return hash('sha256', text, 'base64')
}
