/**
 * How far files were in the usage store when it last answered, kept beside them: what is unshipped is known after a restart, too,
 * while the store is away. The store's own word goes before it.
 */
import { createHash, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { UsageStoreRules } from './options.js'

export type Marks = ReadonlyMap<string, number>

function markFile (folder: string, { url, schema }: UsageStoreRules): string {
  return join(folder, `shipped-${createHash('sha256').update(`${url} ${schema}`).digest('hex').slice(0, 16)}.json`)
}

/** None where there is no file, or it is not whole. */
export function readMarks (folder: string, rules: UsageStoreRules): Marks {
  try {
    return new Map(Object.entries(JSON.parse(readFileSync(markFile(folder, rules), 'utf8'))).map(([name, bytes]) => [name, Number(bytes)]))
  } catch {
    return new Map()
  }
}

/** Whole or not at all. A disk that takes nothing keeps the marks of before. */
export async function writeMarks (folder: string, rules: UsageStoreRules, marks: Marks): Promise<void> {
  const file = markFile(folder, rules)
  const next = `${file}.${randomBytes(4).toString('hex')}`
  try {
    await writeFile(next, JSON.stringify(Object.fromEntries(marks)))
    await rename(next, file)
  } catch {
    await rm(next, { force: true })
  }
}
