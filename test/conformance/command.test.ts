/** The kit as the command that operators type, against the gateway that `npm start` runs. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { run } from '../../bin/cli.js'
import { freePort } from '../helpers/free-port.js'
import { start } from '../standalone/run.js'

async function conformance (...args: string[]): Promise<{ code: number, out: string }> {
  const lines: string[] = []
  const code = await run(['conformance', '--profile', 'house', ...args], {
    env: {}, out: (line) => lines.push(line), err: () => {}, progress: null, onSignal: () => {}, exit: () => {},
  })
  return { code, out: lines.join('\n') }
}

t.test('nothing fails against the demo', async (t) => {
  const { origin } = await start(t, readFileSync('examples/demo/gateway.yaml', 'utf8'))
  const { code, out } = await conformance('--base-url', origin, '--metrics-url', `${origin}/metrics`,
    '--key-openai', 'demo-chat', '--key-anthropic', 'demo-messages', '--key-gemini', 'demo-gemini')
  t.equal(code, 0, out)
  t.match(out, /\b36 passed, 0 failed, 43 not applicable$/)
})

t.test('nothing fails against the standalone gateway in front of the kit\'s own provider', async (t) => {
  const port = await freePort()
  const { origin } = await start(t, `
upstreams: { kit: { url: "http://127.0.0.1:${port}", credential: upstream-secret } }
groups:
  chat: { protocols: [chat_completions, responses, images, embeddings], upstream: kit }
  messages: { protocols: [messages], upstream: kit }
  gemini: { protocols: [generate_content], upstream: kit }
  spent: { protocols: [chat_completions], upstream: kit, limits: { balance: 0 } }
keys:
  - { id: chat, group: chat, secret: key-4711-chat }
  - { id: messages, group: messages, secret: key-4711-messages }
  - { id: gemini, group: gemini, secret: key-4711-gemini }
  - { id: spent, group: spent, secret: key-4711-spent }
state: { engine: memory }
`)
  const { code, out } = await conformance('--base-url', origin, '--metrics-url', `${origin}/metrics`, '--upstream-port', `${port}`,
    '--key-openai', 'key-4711-chat', '--key-anthropic', 'key-4711-messages', '--key-gemini', 'key-4711-gemini', '--key-spent',
    'key-4711-spent')
  t.equal(code, 0, out)
  t.match(out, /\b78 passed, 0 failed, 1 not applicable$/)
})
