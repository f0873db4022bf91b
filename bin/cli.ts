/** Finds the command and its arguments. Each command is loaded on use. */
import { existsSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { reasonOf } from '../plugins/core/balances/store-down.js'
import { packageVersion } from '../plugins/core/version.js'
import { configErrorOf, configFile, demoFile } from '../plugins/standalone/config.js'
import { configOption } from './args.js'
import { helpOf, unknownCommand } from './help.js'
import { UsageError, type Command, type Io } from './io.js'

const commands = new Map<string, () => Promise<Command>>(Object.entries({
  start: async () => (await import('./commands/start.js')).start,
  check: async () => (await import('./commands/check.js')).check,
  init: async () => (await import('./commands/init.js')).init,
  doctor: async () => (await import('./commands/doctor.js')).doctor,
  keys: async () => (await import('./commands/keys.js')).keys,
  usage: async () => (await import('./commands/usage.js')).usage,
  prices: async () => (await import('./commands/prices.js')).prices,
  upstreams: async () => (await import('./commands/upstreams.js')).upstreams,
  conformance: async () => (await import('./conformance/index.js')).conformance,
}))

/** Commands that read no configuration. */
const withoutFile: ReadonlySet<string> = new Set(['init', 'conformance'])

/** Resolves with the exit code: 0 done, 1 failed, 2 the command line is wrong. */
export async function run (args: readonly string[], io: Io): Promise<number> {
  const [name = '', ...rest] = args
  if (name === 'help' || args.some((arg) => arg === '--help' || arg === '-h')) {
    io.out(helpOf(name === 'help' ? rest : args))
    return 0
  }
  if (name === '--version' || name === '-v') {
    io.out(packageVersion)
    return 0
  }
  const { config, url } = parseArgs({ args: rest, strict: false, options: { ...configOption, url: { type: 'string' } } }).values
  const file = configFile(typeof config === 'string' ? config : undefined, io.env)
  try {
    const command = await commands.get(name)?.()
    if (command === undefined) throw new UsageError(unknownCommand(name))
    if (file === '') throw new UsageError('--config is empty: it needs the name of a file')
    if (file === demoFile && !withoutFile.has(name) && url === undefined && !io.primary && existsSync('gateway.yaml')) {
      io.err('this is the demo: --config gateway.yaml takes the file of this folder')
    }
    return await command(file, rest, io)
  } catch (error) {
    return tell(error, { args, file, io })
  }
}

/** Prints mistakes of the configuration with their paths, anything else with its message. No stack: it helps nobody here. */
function tell (error: unknown, { args, file, io }: { readonly args: readonly string[], readonly file: string, readonly io: Io }): number {
  const message = reasonOf(Object(error))
  const mistakes = configErrorOf(error, file)
  if (mistakes !== null) {
    for (const line of mistakes.toLines(file)) io.err(line)
    return 1
  }
  const misused = error instanceof UsageError
  io.err(misused ? `llm-gateway: ${message}\n\n${helpOf(args)}` : `llm-gateway: ${message}`)
  return misused ? 2 : 1
}
