/** Which command, with which arguments. Each command is loaded when it is asked for. */
import { parseArgs } from 'node:util'
import { ConfigError } from '../plugins/standalone/config-error.js'
import { configFile } from '../plugins/standalone/config.js'
import { UsageError, type Command, type Io } from './io.js'

export const usage = `Usage: llm-gateway COMMAND [options]

  start                      run the gateway
  check                      say what is wrong with a configuration
  keys create --group GROUP  issue a key; its secret is printed once
       [--id ID] [--expires DATE] [--label NAME=VALUE]...
       [--requests-per-minute N] [--tokens-per-minute N] [--concurrency N] [--balance TOKENS]
  keys list [--group GROUP]  issued keys
  keys update ID             change a key: any option of create, --disable or --enable;
                             --expires never, --balance none and --label NAME= take away
  keys rotate ID             give a key another secret
  keys revoke ID             end a key
  usage                      the usage ledger, one JSON object a line
       [--from DATE] [--to DATE] [--group GROUP] [--key ID] [--model M] [--protocol P] [--outcome O]
       [--by group|key|model|protocol|day|month|label:NAME]...   sums, in a table
       [--json | --csv] [--timezone ZONE]
  usage reprice --prices FILE   what it would have cost with other price lists; takes the same options
  prices show MODEL          the prices that a model has, and why
  prices check               models of the ledger without a price; fails where there are any
       [--from DATE] [--to DATE]
  conformance                test any gateway from outside (see conformance --help)

keys and usage --by print JSON lines with --json. A DATE is 2027-01-01 or 2027-01-01T00:00:00Z.
All but conformance take --config FILE. It is also read from LLM_GATEWAY_CONFIG; without either it is the demo.`

const commands = new Map<string, Command>(Object.entries({
  start: async (...given) => await (await import('./commands/start.js')).start(...given),
  check: async (...given) => await (await import('./commands/check.js')).check(...given),
  keys: async (...given) => await (await import('./commands/keys.js')).keys(...given),
  usage: async (...given) => await (await import('./commands/usage.js')).usage(...given),
  prices: async (...given) => await (await import('./commands/prices.js')).prices(...given),
} satisfies Record<string, Command>))

/** Resolves with the exit code: 0 done, 1 failed, 2 the command line is wrong. */
export async function run (args: readonly string[], io: Io): Promise<number> {
  const [name = '', ...rest] = args
  if (name === 'conformance') return await (await import('./conformance/index.js')).run(rest, io)
  if (name === 'help' || args.some((arg) => arg === '--help' || arg === '-h')) {
    io.out(usage)
    return 0
  }
  const { config } = parseArgs({ args: rest, strict: false, options: { config: { type: 'string' } } }).values
  const file = configFile(typeof config === 'string' ? config : undefined, io.env)
  try {
    const command = commands.get(name)
    if (command === undefined) throw new UsageError(name === '' ? 'a command is required' : `there is no command ${name}`)
    return await command(file, rest, io)
  } catch (error) {
    return tell(error, file, io)
  }
}

/** What is wrong with the configuration is told with its path, anything else by its message. No stack: it helps nobody here. */
function tell (error: unknown, file: string, io: Io): number {
  const { message, code } = Object(error)
  if (error instanceof ConfigError) {
    for (const line of error.toLines(file)) io.err(line)
    return 1
  }
  const misused = error instanceof UsageError || String(code).startsWith('ERR_PARSE_ARGS')
  io.err(misused ? `llm-gateway: ${String(message)}\n\n${usage}` : `llm-gateway: ${String(message)}`)
  return misused ? 2 : 1
}
