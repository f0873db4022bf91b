import { accessSync, closeSync, constants, openSync, readSync, statSync } from 'node:fs'

/** How a file of lmdb begins, in its first 64 bytes, in the byte order of the machine. */
const magic = Buffer.from(Uint32Array.of(0xbeefc0de).buffer)

/**
 * `damaged` where lmdb 3.5.6 would end the process without a word as it opens the file. A file without a byte is made anew by it. Throws if
 * it is there and cannot be read: it may be in use, and whole. Or if it or its lock cannot be written, as after a command of another user:
 * lmdb would not say which, or end the process.
 */
export function headerOf (path: string): 'right' | 'none' | 'damaged' {
  const [isThere] = [path, `${path}-lock`].map(canWrite)
  if (isThere !== true) return 'none'
  const head = readHead(path)
  if (head.length === 0) return 'none'
  return head.includes(magic) ? 'right' : 'damaged'
}

/** False if it is not there. */
function canWrite (file: string): boolean {
  if (statSync(file, { throwIfNoEntry: false }) === undefined) return false
  accessSync(file, constants.W_OK)
  return true
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
