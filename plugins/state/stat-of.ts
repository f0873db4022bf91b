import type { Stats } from 'node:fs'
import { stat } from 'node:fs/promises'

/** Null if there is no such file. */
export async function statOf (path: string): Promise<Stats | null> {
  try {
    return await stat(path)
  } catch (error) {
    if (isGone(error)) return null
    throw error
  }
}

export function isGone (error: unknown): boolean {
  return Object(error).code === 'ENOENT'
}
