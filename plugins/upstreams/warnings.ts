import { readPlainFileNow } from '../core/config/plain-file.js'
import { addressWarnings } from './address-warning.js'
import type { UpstreamOptions } from './options.js'
import { isSecret } from './secret.js'

/** Warnings for the operator; each begins with the name of the field. */
export function upstreamWarnings ({ credential, ...address }: UpstreamOptions): string[] {
  const missing = typeof credential === 'object' ? fileWarning(credential.file) : null
  return [...addressWarnings(address).map((warning) => `url ${warning}`), ...missing === null ? [] : [`credential.file ${missing}`]]
}

/** A warning and no error, because the file may be mounted later. */
function fileWarning (file: string): string | null {
  try {
    return isSecret(readPlainFileNow(file).trim()) ? null : 'holds no credential: requests to it are refused until it does'
  } catch (error) {
    return `cannot be read (${String(Reflect.get(Object(error), 'code'))}): requests to it are refused until it can`
  }
}
