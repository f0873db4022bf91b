import { drainDefaults } from '../../forward/drain.js'
import { graceOf, loadConfig, readServedText } from '../config.js'
import type { Environment } from '../config-yaml.js'
import type { Edition } from './rollout.js'

/** With what the primary itself goes by. */
export interface ReadEdition extends Edition {
  /** How long requests may still run at the end, and how long what was cut of them is read on for its usage. */
  readonly graceMs: number
  readonly drainMs: number
}

/** Throws ConfigError where the file is not right. */
export function readEdition ({ file, env }: { readonly file: string, readonly env: Environment }): ReadEdition {
  const text = readServedText(file)
  const config = loadConfig(file, env, text)
  const { prices, forward } = config
  return {
    text, priceFiles: prices?.files ?? [], graceMs: graceOf(config), drainMs: forward?.drain?.maxMs ?? drainDefaults.maxMs,
  }
}
