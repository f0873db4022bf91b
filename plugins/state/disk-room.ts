import { statfsSync } from 'node:fs'
import { getuid } from 'node:process'

const smallWriteBytes = 1024 * 1024

/** Whether the disk that a folder is on takes so much more. */
export function hasDiskRoom (folder: string, bytes = smallWriteBytes): boolean {
  const { bfree, bavail, bsize } = statfsSync(folder)
  // What a file system keeps back is for this user.
  return (getuid?.() === 0 ? bfree : bavail) * bsize >= bytes
}
