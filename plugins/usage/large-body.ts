/** Work on a large body, one piece per turn: all at once would block the event loop for 40 ms and more. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { fieldFound, type Edit, type Field } from './body-field.js'
import { openObject } from '../core/body/bytes.js'
import { JsonScanner } from './json-scanner.js'
import { compileSearch } from './search-tree.js'

/** Bytes per turn; either takes a few milliseconds in the worst case. */
const searchedInTurn = 256 * 1024
const copiedInTurn = 4 * 1024 * 1024

/** A top-level field of a JSON object, null if the body is none. The value of a field that is too long to keep counts as null. */
export async function searchSlowly (body: Buffer, name: string): Promise<Field | null> {
  const scanner = new JsonScanner(compileSearch([name]))
  for (let from = 0; from < body.length; from += searchedInTurn) {
    scanner.push(body, from, Math.min(from + searchedInTurn, body.length))
    await nextTurn()
  }
  if (!scanner.done || scanner.first !== openObject) return null
  return scanner.overflow ? { ...fieldFound(scanner), value: null } : fieldFound(scanner)
}

export async function insertSlowly (body: Buffer, { start, end, text }: Edit): Promise<Buffer> {
  // As bytes, because it may contain the caller's own options.
  const inserted = Buffer.from(text)
  const result = Buffer.allocUnsafe(start + inserted.length + body.length - end)
  await copySlowly(body.subarray(0, start), result)
  inserted.copy(result, start)
  await copySlowly(body.subarray(end), result.subarray(start + inserted.length))
  return result
}

async function copySlowly (from: Buffer, to: Buffer): Promise<void> {
  for (let at = 0; at < from.length; at += copiedInTurn) {
    from.copy(to, at, at, at + copiedInTurn)
    await nextTurn()
  }
}
