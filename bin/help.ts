/** What each command says of itself. */
import { didYouMean } from '../plugins/core/did-you-mean.js'

const config = '  --config FILE              the configuration; default LLM_GATEWAY_CONFIG, then the demo'
const date = 'A DATE is 2027-01-01 or 2027-01-01T00:00:00Z.'

interface Help {
  readonly line: string
  readonly text: string
}

const commands: ReadonlyMap<string, Help> = new Map(Object.entries<Help>({
  start: {
    line: 'run the gateway',
    text: `Usage: llm-gateway start [--config FILE]

Runs until SIGTERM or SIGINT and the end of the requests that run then; a second signal ends it at once. SIGHUP or a changed file
reloads. HOST and PORT of the environment win over listen. The log is JSON, in a terminal plain lines where pino-pretty is installed.

${config}`,
  },
  check: {
    line: 'say what is wrong with a configuration',
    text: `Usage: llm-gateway check [--config FILE]

Says every mistake at once, as FILE:LINE: PATH: what is wrong, and ends with 1; ends with 0 where a start would succeed. It opens no
port, no upstream and no store.

${config}`,
  },
  init: {
    line: 'write a gateway.yaml to begin with',
    text: `Usage: llm-gateway init [--config FILE]

Writes a commented configuration for the providers whose variables are set in the environment, with a new key; the secret is printed
once. A file that is there is left as it is.

  --config FILE              the file to write; default LLM_GATEWAY_CONFIG, then gateway.yaml`,
  },
  doctor: {
    line: 'send one cheap request to each upstream',
    text: `Usage: llm-gateway doctor [--config FILE]

Asks each upstream for its list of models, which costs nothing, and says what is wrong with its name, its TLS, its path or its key.
Ends with 1 where one of them would not serve.

${config}
  --timeout-ms N             limit of one request (default: 10000)`,
  },
  keys: {
    line: 'issue, list, change and end keys',
    text: `Usage: llm-gateway keys create --group GROUP [options]   issue a key; its secret is printed once
       llm-gateway keys list [--group GROUP]
       llm-gateway keys update ID [options]               change a key
       llm-gateway keys rotate ID                         give it another secret
       llm-gateway keys revoke ID                         end it

  --id ID
  --expires DATE             never takes it away
  --label NAME=VALUE         may be given again; NAME= takes it away
  --requests-per-minute N    none takes a limit away
  --tokens-per-minute N
  --concurrency N
  --balance TOKENS
  --disable, --enable        of update
  --json                     JSON lines
${config}

${date}`,
  },
  usage: {
    line: 'read the usage ledger',
    text: `Usage: llm-gateway usage [options]                       the records, one JSON object a line; sums with --by
       llm-gateway usage reprice --prices FILE [options]  what it would have cost with other price lists

  --from DATE, --to DATE
  --group, --key, --model, --protocol, --outcome NAME     only these; may be given again
  --by group|key|model|protocol|day|month|label:NAME      sums, in a table; may be given again
  --json, --csv              --csv is of sums
  --timezone ZONE            of days and months (default: UTC)
  --local                    this host's ledger, where there is a usage store
${config}

${date}`,
  },
  prices: {
    line: 'look at the price lists',
    text: `Usage: llm-gateway prices show MODEL                     the prices that a model has, and why
       llm-gateway prices check [options]                models of the ledger without a price; fails where there are any

  --from DATE, --to DATE     of check
  --timezone ZONE            of dates without a time (default: UTC)
  --local                    this host's ledger, where there is a usage store
${config}

${date}`,
  },
  upstreams: {
    line: 'see how the upstreams of a gateway that runs do',
    text: `Usage: llm-gateway upstreams [--url CONSOLE] [--json]    members, breakers and cooldowns, asked of the gateway's console

  --url CONSOLE              its address; default: that of the configuration
  --json
${config}`,
  },
  conformance: { line: 'test any gateway from outside (see conformance --help)', text: '' },
}))

/** All commands, a line each. */
export const overview = [
  'Usage: llm-gateway COMMAND [options]', '',
  ...[...commands].map(([name, { line }]) => `  ${name.padEnd(12)} ${line}`), '',
  'llm-gateway COMMAND --help says more of one. All but conformance take --config FILE, which is also read from LLM_GATEWAY_CONFIG;',
  'without either it is the demo. llm-gateway --version tells which this is.',
].join('\n')

/** Of one command, or all in short. */
export function helpOf (command: string): string {
  return commands.get(command)?.text || overview
}

/** What to say of a command that there is not. */
export function unknownCommand (name: string): string {
  return name === '' ? 'a command is required' : `there is no command ${name}${didYouMean(name, [...commands.keys()])}`
}
