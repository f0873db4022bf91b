import { closeSync, existsSync, fstatSync, openSync, readdirSync, readSync, utimesSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { endMark, isLedgerName } from './read.js'

/**
 * Marks all files of a folder as settled. For balances that were made anew: nothing is held any more, and which late charges they have is
 * forgotten, so that one of a killed process would count twice. Synchronous: it is done under the lock of a file.
 */
export function endAll (path: string): void {
  const names = existsSync(path) ? readdirSync(path) : []
  for (const name of names.filter(isLedgerName)) {
    try {
      end(join(path, name))
    } catch {
      // A file that takes no mark keeps nobody from a start.
    }
  }
}

/**
 * Its time stays that of its newest record, as at an orderly end; set by its name, as Node's permission model allows. Of a crash its last
 * line may be cut off.
 */
function end (path: string): void {
  const file = openSync(path, 'a+')
  try {
    const { size, atime, mtime } = fstatSync(file)
    const mark = `${endMark}\n`
    const tail = Buffer.alloc(mark.length)
    const read = readSync(file, tail, 0, tail.length, Math.max(0, size - tail.length))
    const last = tail.toString('latin1', 0, read)
    if (last === mark) return
    writeSync(file, last.endsWith('\n') || last === '' ? mark : `\n${mark}`)
    utimesSync(path, atime, mtime)
  } finally {
    closeSync(file)
  }
}
