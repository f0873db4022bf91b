import { closeSync, openSync, readSync, statSync } from 'node:fs'

/** How a file of lmdb begins, in its first 64 bytes, in the byte order of the machine. */
const magic = Buffer.from(Uint32Array.of(0xbeefc0de).buffer)

/**
 * `damaged` where lmdb 3.5.6 would end the process without a word as it opens the file. A file without a byte is made anew by it. Throws if
 * it is there and cannot be read: it may be in use, and whole.
 */
export function headerOf (path: string): 'right' | 'none' | 'damaged' {
  if (statSync(path, { throwIfNoEntry: false }) === undefined) return 'none'
  const head = readHead(path)
  if (head.length === 0) return 'none'
  return head.includes(magic) ? 'right' : 'damaged'
}

function readHead (path: string): Buffer {
  const head = Buffer.alloc(64)
  const file = openSync(path, 'r')
  try {
    return head.subarray(0, readSync(file, head))
  } finally {
    closeSync(file)
  }
}
