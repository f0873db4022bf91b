import { existsSync, mkdirSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/**
 * Makes a folder and those above it. Node's own `recursive` never returns if the system reports ENOENT for a new folder, as Linux does
 * below /proc.
 */
export function makeFolder (path: string): void {
  const missing: string[] = []
  for (let at = resolve(path); !existsSync(at); at = dirname(at)) missing.unshift(at)
  if (missing.length === 0) mkdirSync(path, { recursive: true })
  for (const folder of missing) makeOne(folder)
}

/** Another process may have made it meanwhile. */
function makeOne (folder: string): void {
  try {
    mkdirSync(folder)
  } catch (error) {
    if (!existsSync(folder)) throw error
  }
}
