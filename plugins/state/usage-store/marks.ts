/**
 * How far files were in the usage store when it last answered, kept beside them: so what is unshipped is known after a restart, too, while
 * the store is away. What the store itself says takes precedence.
 */
import { hash, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { UsageStoreRules } from './options.js'

export type Marks = ReadonlyMap<string, number>

function markFile (folder: string, { url, schema }: UsageStoreRules): string {
  return join(folder, `shipped-${hash('sha256', `${url} ${schema}`, 'hex').slice(0, 16)}.json`)
}

/** Empty if there is no file, or it is damaged. */
export function readMarks (folder: string, rules: UsageStoreRules): Marks {
  try {
    return new Map(Object.entries(JSON.parse(readFileSync(markFile(folder, rules), 'utf8'))).map(([name, bytes]) => [name, Number(bytes)]))
  } catch {
    return new Map()
  }
}

/** Writes all marks or none. If the disk accepts nothing, the old ones stay. */
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
