import { Writable } from 'node:stream'
import { lineFeed } from '../core/body/bytes.js'

/**
 * What a pipe or a socket takes as a whole or not at all (PIPE_BUF of Linux); of more, it may take a part, followed by what another process
 * writes.
 */
const wholeBytes = 4_096

/** Writes lines to an output that other processes write to, too, so that none is mixed with one of theirs. Longer ones may be. */
export function wholeLines (out: Writable): Writable {
  return new Writable({
    write (lines: Buffer, _, done) {
      writeLines(out, lines).then(() => done(), done)
    },
  })
}

/** One write after the other: a stream would join what waits for it. */
async function writeLines (out: Writable, lines: Buffer): Promise<void> {
  for (let start = 0, end = 0; start < lines.length; start = end) {
    end = endOfWhole(lines, start)
    await new Promise<void>((resolve, reject) => {
      out.write(lines.subarray(start, end), (error) => error ? reject(error) : resolve())
    })
  }
}

/** Behind the last line that fits, or behind the first one if that does not fit. */
function endOfWhole (lines: Buffer, start: number): number {
  const last = lines.lastIndexOf(lineFeed, start + wholeBytes - 1)
  const end = last < start ? lines.indexOf(lineFeed, start) : last
  return end < 0 ? lines.length : end + 1
}
