import { closeSync, openSync, readSync } from 'node:fs'

/** How a file of lmdb begins, in its first 64 bytes, in the byte order of the machine. */
const magic = Buffer.from(Uint32Array.of(0xbeefc0de).buffer)

/** `damaged` where lmdb 3.5.6 would end the process without a word as it opens the file. A file without a byte is made anew by it. */
export function headerOf (path: string): 'right' | 'none' | 'damaged' {
  const head = readHead(path)
  if (head.length === 0) return 'none'
  return head.includes(magic) ? 'right' : 'damaged'
}

function readHead (path: string): Buffer {
  const head = Buffer.alloc(64)
  let file: number
  try {
    file = openSync(path, 'r')
  } catch {
    // Not there, or not ours: lmdb has words for that.
    return head.subarray(0, 0)
  }
  try {
    return head.subarray(0, readSync(file, head))
  } finally {
    closeSync(file)
  }
}
