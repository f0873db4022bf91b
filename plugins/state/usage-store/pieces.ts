/** Reads whole lines of a file that may still grow, from the beginning of any line on. */
import { open, type FileHandle } from 'node:fs/promises'
import { lineFeed } from '../../core/body/bytes.js'

const pieceBytes = 256 * 1024

export interface Piece {
  /** Bytes of the file, without the end of the last line. */
  readonly bytes: Buffer
  /** Where the next piece begins. */
  readonly end: number
}

/** The lines that begin at `start`, about as many as fit into 256 KiB; null if there is no whole one. */
export async function readPiece (path: string, start: number): Promise<Piece | null> {
  const handle = await open(path)
  try {
    return await readLines(handle, start, pieceBytes)
  } finally {
    await handle.close()
  }
}

async function readLines (handle: FileHandle, start: number, length: number): Promise<Piece | null> {
  const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(length), 0, length, start)
  const last = buffer.subarray(0, bytesRead).lastIndexOf(lineFeed)
  if (last >= 0) return { bytes: buffer.subarray(0, last), end: start + last + 1 }
  return bytesRead < length ? null : await readLines(handle, start, length * 2)
}

/** At most `count` lines of a piece, and where the next line begins. */
export function firstLines ({ bytes, end }: Piece, count: number): { readonly lines: string[], readonly end: number } {
  const start = end - bytes.length - 1
  let to = -1
  for (let left = count; left > 0; left -= 1) {
    to = bytes.indexOf(lineFeed, to + 1)
    if (to < 0) return { lines: bytes.toString('utf8').split('\n'), end }
  }
  return { lines: bytes.toString('utf8', 0, to).split('\n'), end: start + to + 1 }
}

/** Number of lines that look like records, without parsing them. */
export function countRecords ({ bytes }: Piece, endMark: string): number {
  let count = 0
  for (let from = 0, to = 0; to >= 0; from = to + 1) {
    to = bytes.indexOf(lineFeed, from)
    if ((to < 0 ? bytes.length : to) - from !== endMark.length) count += 1
  }
  return count
}
