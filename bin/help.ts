/** The help of each command. */
import { didYouMean } from '../plugins/core/config/did-you-mean.js'
import { conformance } from './conformance/help.js'

const config = '  --config FILE              the configuration; default LLM_GATEWAY_CONFIG, then the demo'
const date = 'A DATE is 2027-01-01 or 2027-01-01T00:00:00Z.'

interface Help {
  readonly line: string
  /** How it is called. The line of a sub-command ends with ` #` and its name. */
  readonly usage: readonly string[]
  /** The text that follows. Lines that apply only to some sub-commands end with ` #` and their names. */
  readonly text: string
}

const commands: ReadonlyMap<string, Help> = new Map(Object.entries<Help>({
  start: {
    line: 'run the gateway',
    usage: ['[--config FILE]'],
    text: `Runs until SIGTERM or SIGINT, then waits for running requests to end; a second signal ends it at once. SIGHUP or a
change of the file reloads it, so FILE cannot be a pipe. HOST and PORT of the environment override listen. The log is JSON; in a
terminal, plain lines if pino-pretty is installed.

${config}`,
  },
  check: {
    line: 'check a configuration',
    usage: ['[--config FILE]'],
    text: `Reports all mistakes at once, as FILE:LINE: PATH: what is wrong, and exits with 1; exits with 0 if a start would succeed. It
opens no port, no upstream and no store.

${config}`,
  },
  init: {
    line: 'write a first gateway.yaml',
    usage: ['[--config FILE]'],
    text: `Writes a commented configuration for the providers whose variables are set in the environment, with a new key whose
secret is printed once. An existing file is not changed.

  --config FILE              the file to write; default LLM_GATEWAY_CONFIG, then gateway.yaml`,
  },
  doctor: {
    line: 'send one cheap request to each upstream',
    usage: ['[--config FILE]'],
    text: `Asks each upstream for its list of models, which costs nothing, and says what is wrong with its name, its TLS, its path or its
key. Exits with 1 if one of them would not serve.

${config}
  --timeout-ms N             limit of one request (default: 10000)`,
  },
  keys: {
    line: 'issue, list, change and revoke keys',
    usage: [
      'create --group GROUP [options]   issue a key; its secret is printed once #create',
      'list [--group GROUP]             list keys, without their secrets #list',
      'update ID [options]              change a key #update',
      'rotate ID                        give it a new secret #rotate',
      'revoke ID                        take it out of use #revoke',
    ],
    text: `  --id ID                    default: generated #create
  --group GROUP #create,list,update
  --expires DATE             "never" removes it #create,update
  --label NAME=VALUE         may be repeated; NAME= removes it #create,update
  --requests-per-minute N    "none" removes a limit #create,update
  --tokens-per-minute N #create,update
  --concurrency N #create,update
  --balance TOKENS #create,update
  --budget AMOUNT/PERIOD     such as 5/month or "1000tokens/day Europe/Berlin"; may be repeated; replaces earlier ones #create,update
  --disable, --enable #update
  --json                     JSON lines
${config}

${date} #create,update`,
  },
  usage: {
    line: 'read the usage ledger',
    usage: [
      '[options]                         the records, one JSON object per line; sums with --by',
      'reprice --prices FILE [options]   what it would have cost with other prices #reprice',
    ],
    text: `  --from DATE, --to DATE
  --group, --key, --model, --protocol, --outcome NAME     only these; may be repeated
  --by group|key|model|protocol|day|month|label:NAME      sums, in a table; may be repeated
  --json, --csv              --csv only with --by
  --timezone ZONE            of days and months (default: UTC)
  --local                    this host's ledger, if there is a usage store
${config}

${date}`,
  },
  prices: {
    line: 'look up prices',
    usage: [
      'show MODEL        the prices that a model has, and why #show',
      'check [options]   models of the ledger without a price, or a part of it; fails if there are any #check',
    ],
    text: `  --from DATE, --to DATE     of check #check
  --timezone ZONE            of dates without a time (default: UTC) #check
  --local                    this host's ledger, if there is a usage store #check
${config}

${date} #check`,
  },
  upstreams: {
    line: 'show the upstreams of a running gateway',
    usage: ['[--url CONSOLE] [--json]'],
    text: `Members, breakers and cooldowns, read from the gateway's console.

  --url CONSOLE              its address; default: that of the configuration
  --json
${config}`,
  },
  conformance,
}))

/** All commands, a line each. */
export const overview = [
  'Usage: llm-gateway COMMAND [options]', '',
  ...[...commands].map(([name, { line }]) => `  ${name.padEnd(12)} ${line}`), '',
  'llm-gateway COMMAND --help tells more. All commands but conformance take --config FILE, or else LLM_GATEWAY_CONFIG;',
  'without either they use the demo. llm-gateway --version prints the version.',
].join('\n')

/** Help of a command, only for its sub-command if that is named; the overview for an unknown command. */
export function helpOf ([name = '', sub = '']: readonly string[]): string {
  const help = commands.get(name)
  if (help === undefined) return overview
  const { usage, text } = help
  const known = usage.some((line) => namesOf(line).includes(sub))
  const shown = (line: string): string[] => !known || namesOf(line).includes(sub) || (namesOf(line).length === 0 && line !== usage[0])
    ? [line.replace(tag, '')]
    : []
  const calls = usage.flatMap(shown).map((call) => `llm-gateway ${name} ${call}`)
  return `Usage: ${calls.join('\n       ')}\n\n${text.split('\n').flatMap(shown).join('\n').trimEnd()}`
}

const tag = / #([a-z,]+)$/

function namesOf (line: string): string[] {
  return tag.exec(line)?.[1]?.split(',') ?? []
}

/** The message for an unknown command. */
export function unknownCommand (name: string): string {
  if (name.startsWith('-')) return `${name} comes before the command: put the command first, then its options`
  return name === '' ? 'a command is required' : `there is no command ${name}${didYouMean(name, [...commands.keys()])}`
}
