/** Which command, with which arguments. Each command is loaded when it is asked for. */
import { parseArgs } from 'node:util'
import { ConfigError } from '../plugins/standalone/config-error.js'
import { configFile } from '../plugins/standalone/config.js'
import type { Environment } from '../plugins/standalone/config-yaml.js'
import type { LogStream } from '../plugins/standalone/gateway.js'

export type Signal = 'SIGHUP' | 'SIGINT' | 'SIGTERM'

/** What a command touches of its process. */
export interface Io {
  readonly env: Environment
  /** A line of the result. */
  readonly out: (line: string) => void
  /** A line about what went wrong, or of progress. */
  readonly err: (line: string) => void
  readonly onSignal: (signal: Signal, listener: () => void) => void
  /** Where log lines go; default stdout. */
  readonly logStream?: LogStream
}

export const usage = `Usage: llm-gateway COMMAND [options]

  start         run the gateway                        [--config FILE]
  check         say what is wrong with a configuration [--config FILE]
  conformance   test any gateway from outside          (see conformance --help)

FILE is also read from LLM_GATEWAY_CONFIG; without either it is the demo.`

/** Resolves with the exit code: 0 done, 1 failed, 2 the command line is wrong. */
export async function run (args: readonly string[], io: Io): Promise<number> {
  const [command = '', ...rest] = args
  if (command === 'conformance') return await (await import('./conformance/index.js')).run(rest, io)
  if (command === '--help' || command === 'help') {
    io.out(usage)
    return 0
  }
  if (command !== 'start' && command !== 'check') return wrongUsage(command === '' ? 'a command is required' : `there is no command ${command}`, io)
  const file = fileOf(rest, io)
  if (file === null) return wrongUsage(`${command} takes --config FILE and nothing else`, io)
  return await guarded(file, io, async () => {
    if (command === 'check') return await (await import('./commands/check.js')).check(file, io)
    return await (await import('./commands/start.js')).start(file, io)
  })
}

function fileOf (args: readonly string[], io: Io): string | null {
  try {
    return configFile(parseArgs({ args: [...args], options: { config: { type: 'string' } } }).values.config, io.env)
  } catch {
    return null
  }
}

function wrongUsage (message: string, io: Io): number {
  io.err(`llm-gateway: ${message}\n\n${usage}`)
  return 2
}

/** What is wrong with the configuration is told with its path, anything else by its message. No stack: it helps nobody here. */
async function guarded (file: string, io: Io, command: () => Promise<number>): Promise<number> {
  try {
    return await command()
  } catch (error) {
    if (error instanceof ConfigError) for (const line of error.message.split('\n')) io.err(`${file}: ${line}`)
    else io.err(`llm-gateway: ${String(Object(error).message)}`)
    return 1
  }
}
