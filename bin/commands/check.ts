import { ConfigError } from '../../plugins/standalone/config-error.js'
import { readFile, withFileLines } from '../../plugins/standalone/config.js'
import { portProblems } from '../../plugins/standalone/config-values.js'
import { tryOut } from '../../plugins/standalone/trial.js'
import { unitWarnings } from '../../plugins/standalone/unit-warnings.js'
import { unreached } from '../../plugins/upstreams/check-groups.js'
import { upstreamWarnings } from '../../plugins/upstreams/warnings.js'
import { configOption, readArgs } from '../args.js'
import type { Io } from '../io.js'

/**
 * Prints `ok`, or throws every mistake that `start` would find, all at once: the app is built too, but opens no port, no upstream and no
 * store.
 */
export async function check (file: string, args: string[], io: Io): Promise<number> {
  readArgs({ args, options: configOption })
  const reading = readFile(file, io.env)
  const { config } = reading
  const problems = [...reading.problems, ...portProblems(io.env), ...await tryOut(reading)]
  if (problems.length > 0) throw withFileLines(new ConfigError(problems), file)
  for (const warning of [...unitWarnings(config), ...unreached({ pools: {}, ...config })]) io.err(`${file}: warning: ${warning}`)
  for (const [name, entry] of Object.entries(config.upstreams)) {
    if (entry.simulate === true) continue
    for (const warning of upstreamWarnings(entry)) io.err(`${file}: warning: upstreams.${name}.${warning}`)
  }
  io.out(`${file}: ok`)
  return 0
}
