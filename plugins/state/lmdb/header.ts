import { accessSync, closeSync, constants, openSync, readSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/** How a file of lmdb begins, in its first 64 bytes, in the byte order of the machine. */
const magic = Buffer.from(Uint32Array.of(0xbeefc0de).buffer)

/**
 * `damaged` where lmdb 3.5.6 would end the process without a word as it opens the file. A file without a byte is made anew by it. Throws if
 * it is there and cannot be read: it may be in use, and whole. Or if it or its lock cannot be used, as after a command of another user, or
 * made: lmdb would not say which, or end the process.
 */
export function headerOf (path: string): 'right' | 'none' | 'damaged' {
  const [isThere] = [path, `${path}-lock`].map(isUsable)
  if (isThere !== true) return 'none'
  const head = readHead(path)
  if (head.length === 0) return 'none'
  return head.includes(magic) ? 'right' : 'damaged'
}

/** False if it is not there and can be made. */
function isUsable (file: string): boolean {
  const isThere = statSync(file, { throwIfNoEntry: false }) !== undefined
  if (isThere) accessSync(file, constants.R_OK | constants.W_OK)
  else accessSync(dirname(file), constants.W_OK)
  return isThere
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
