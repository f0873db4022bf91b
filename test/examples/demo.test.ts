import { spawnSync } from 'node:child_process'
import t, { type Test } from 'tap'
import { protocolNames } from '../../plugins/protocols/index.js'
import { field } from '../../plugins/protocols/simulate-text.js'
import { launch, originOf, program, until } from '../helpers/launch.js'

/** The demo as `npm start` runs it, and the commands that it prints, by protocol in the order of the table. */
async function start (t: Test): Promise<{ origin: string, commands: string[] }> {
  const child = launch(t, program, ['start'], { PORT: '0' })
  const origin = await originOf(child)
  t.equal(String(await until(child.out, /^metrics: .*/)), `metrics: ${origin}/metrics`)
  const commands: string[] = []
  while (commands.length < protocolNames.length) commands.push(String((await until(child.out, /^curl .*/))[0]))
  return { origin, commands }
}

function runCommand (command: string): { status: number, reply: unknown } {
  const { stdout } = spawnSync('sh', ['-c', `${command} -s -w '\n%{http_code}'`], { encoding: 'utf8' })
  const [body = '', status] = stdout.split(/\n(?=\d+$)/)
  return { status: Number(status), reply: JSON.parse(body) }
}

/** Tokens that the reply says it used, read without the gateway's own readers. */
function tokensOf (reply: unknown): number {
  const usage = field(reply, 'usage') ?? field(reply, 'usageMetadata')
  const total = field(usage, 'total_tokens') ?? field(usage, 'totalTokenCount')
  return Number(total ?? Number(field(usage, 'input_tokens')) + Number(field(usage, 'output_tokens')))
}

async function countedTokens (origin: string): Promise<Map<string, number>> {
  const text = await (await fetch(`${origin}/metrics`)).text()
  const counted = new Map<string, number>()
  for (const [, protocol = '', count] of text.matchAll(/^llm_gateway_tokens_total\{protocol="(\w+)".*\} (\d+)$/gm)) {
    counted.set(protocol, (counted.get(protocol) ?? 0) + Number(count))
  }
  return counted
}

const noCurl = spawnSync('curl', ['--version']).status === 0 ? false : 'curl is not installed'

t.test('the printed commands work, and the metrics have their exact tokens', { skip: noCurl }, async (t) => {
  const { origin, commands } = await start(t)
  const used = new Map<string, number>()
  for (const [index, protocol] of protocolNames.entries()) {
    const { status, reply } = runCommand(String(commands[index]))
    t.equal(status, 200, protocol)
    used.set(protocol, tokensOf(reply))
    t.ok(tokensOf(reply) > 0, `${protocol} says its usage`)
  }
  t.strictSame([...await countedTokens(origin)].sort(), [...used].sort())
})

t.test('wrong keys are told so in the words of the protocol', { skip: noCurl }, async (t) => {
  const { commands } = await start(t)
  const of = (protocol: string): string => String(commands[protocolNames.findIndex((name) => name === protocol)])
  t.match(runCommand(of('chat_completions').replace('demo-chat', 'wrong')), {
    status: 401, reply: { error: { message: String, type: 'authentication_error', code: 'invalid_api_key' } },
  })
  t.match(runCommand(of('messages').replace(/-H 'x-api-key: [^']*'/, '')), {
    status: 401, reply: { type: 'error', error: { type: 'authentication_error', message: String }, request_id: String },
  })
  t.match(runCommand(of('generate_content').replace('demo-gemini', 'demo-chat')), {
    status: 403, reply: { error: { code: 403, status: 'PERMISSION_DENIED', message: /generate_content/ } },
  })
})

t.test('a streamed command works too', { skip: noCurl }, async (t) => {
  const { origin, commands } = await start(t)
  const command = String(commands[0]).replace('{"model"', '{"stream":true,"model"')
  const { stdout } = spawnSync('sh', ['-c', `${command} -sN`], { encoding: 'utf8' })
  t.match(stdout, /^data: .*\n\n[^]*data: \[DONE\]\n\n$/)
  t.ok(Number((await countedTokens(origin)).get('chat_completions')) > 0)
})
