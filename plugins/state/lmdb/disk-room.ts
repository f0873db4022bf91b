import { statfsSync } from 'node:fs'

const smallWriteBytes = 1024 * 1024

/** Whether the disk of a folder has room for so many bytes more. */
export function hasDiskRoom (folder: string, bytes = smallWriteBytes): boolean {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize >= bytes
}
