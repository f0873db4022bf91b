/**
 * Reads files while callers are served. Anything may have replaced such a file: opening a pipe waits for its other side, on the event loop
 * or in one of the few threads that a process has for disks and names; and reading what has no end takes all memory.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync, type BigIntStats } from 'node:fs'
import { open } from 'node:fs/promises'

/** Four times the size of a list of every model's prices. */
export const maxPlainBytes = 8 * 1024 * 1024

const flags = constants.O_RDONLY | constants.O_NONBLOCK
// As big integers: the plain form leaves behind what Node's `realpathSync` reads (lib/fs.js of Node 20 to 24).
const asBig = { bigint: true } as const

/** Why a file is not read; `code` is shown like the codes of the system. */
class UnfitFileError extends Error {
  readonly code: string

  constructor (code: string) {
    super(code)
    this.code = code
  }
}

/** True for something that exists but is not read: it is no file, or too long. */
export function isUnfit (error: unknown): boolean {
  return error instanceof UnfitFileError
}

export function readPlainFileNow (path: string): string {
  const file = openSync(path, flags)
  try {
    check(fstatSync(file, asBig))
    return readFileSync(file, 'utf8')
  } finally {
    closeSync(file)
  }
}

export async function readPlainFile (path: string): Promise<string> {
  const file = await open(path, flags)
  try {
    check(await file.stat(asBig))
    return await file.readFile('utf8')
  } finally {
    await file.close()
  }
}

function check (stats: BigIntStats): void {
  if (!stats.isFile()) throw new UnfitFileError('NOT_A_FILE')
  if (stats.size > maxPlainBytes) throw new UnfitFileError('TOO_LONG')
}
