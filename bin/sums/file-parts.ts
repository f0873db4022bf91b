/** Splits large files into parts of whole lines, which may be read in any order, at once, and by several threads. */
import { closeSync, openSync, readSync } from 'node:fs'
import { lineFeed } from '../../plugins/core/body/bytes.js'
import type { LedgerFile } from '../../plugins/state/ledger/read.js'
import { isGone } from '../../plugins/state/stat-of.js'
import { bytesOf, slackBytes, type Bytes } from './json-bytes.js'

const blockBytes = 1024 * 1024

/** The lines that begin between two positions of a file. */
export interface FilePart {
  readonly path: string
  /** Inclusive. */
  readonly from: number
  /** Exclusive; Infinity to include what is written meanwhile. */
  readonly to: number
}

export function partsOf (files: readonly LedgerFile[], partBytes: number): FilePart[] {
  return files.flatMap(({ path, bytes }) => {
    const count = Math.max(1, Math.ceil(bytes / partBytes))
    return Array.from({ length: count }, (_, at) => {
      return { path, from: at * partBytes, to: at === count - 1 ? Infinity : (at + 1) * partBytes }
    })
  })
}

/** Position of a line in some bytes, without its end. */
type OnLine = (json: Bytes, start: number, end: number) => void

/**
 * Calls `onLine` for each line of a part; the last one of a file may have no end. A file that is gone by now, as a gateway found it too
 * old, has none. Holds a MiB, or the longest line.
 */
export function readPart (part: FilePart, onLine: OnLine): void {
  const file = opened(part.path)
  if (file === null) return
  try {
    readLines(file, part, onLine)
  } finally {
    closeSync(file)
  }
}

function opened (path: string): number | null {
  try {
    return openSync(path, 'r')
  } catch (error) {
    if (isGone(error)) return null
    throw error
  }
}

function readLines (file: number, { from, to }: FilePart, onLine: OnLine): void {
  // The byte before shows whether a line begins at `from`; a line that begins earlier belongs to the part before.
  let isOurs = from === 0
  let [first, held] = [Math.max(0, from - 1), 0]
  let json = bytesOf(Buffer.allocUnsafe(Math.min(blockBytes, to - first) + slackBytes))
  for (let isEnd = false; !isEnd && first < to;) {
    if (held + slackBytes === json.bytes.length) json = larger(json)
    const read = readSync(file, json.bytes, held, json.bytes.length - slackBytes - held, first + held)
    const filled = held + read
    isEnd = read === 0
    const whole = isEnd ? filled : json.bytes.subarray(0, filled).lastIndexOf(lineFeed) + 1
    for (let start = 0, end = 0; start < whole && first + start < to; start = end + 1) {
      end = isEnd ? filled : json.bytes.indexOf(lineFeed, start)
      if (isOurs) onLine(json, start, end)
      isOurs = true
    }
    json.bytes.copyWithin(0, whole, filled)
    first += whole
    held = filled - whole
  }
}

function larger ({ bytes }: Bytes): Bytes {
  const more = Buffer.allocUnsafe(2 * bytes.length)
  bytes.copy(more)
  return bytesOf(more)
}
