import { drainDefaults } from '../../forward/drain.js'
import { loadConfig, readServedText } from '../config.js'
import { graceOf } from '../config-values.js'
import type { Environment } from '../config-yaml.js'
import type { Edition } from './rollout.js'

/** With the values that the primary itself uses. */
export interface ReadEdition extends Edition {
  /** How long requests may still run at the end, and how long cut replies are read for their usage, in milliseconds. */
  readonly graceMs: number
  readonly drainMs: number
}

/** Throws ConfigError if the file is not valid. */
export function readEdition ({ file, env }: { readonly file: string, readonly env: Environment }): ReadEdition {
  const text = readServedText(file)
  const config = loadConfig(file, env, text)
  const { prices, forward } = config
  return {
    text, priceFiles: prices?.files ?? [], graceMs: graceOf(config), drainMs: forward?.drain?.maxMs ?? drainDefaults.maxMs,
  }
}
