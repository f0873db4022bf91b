/** A standalone gateway in the test's own process, from a file that the test may change. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { originOf } from '../../plugins/standalone/curls.js'
import { Standalone } from '../../plugins/standalone/standalone.js'

export interface Running {
  readonly gateway: Standalone
  readonly origin: string
  readonly file: string
  readonly write: (text: string) => void
  /** Everything that was logged. */
  readonly log: () => string
}

/** Starts on a free port; `t` stops it. */
export async function start (t: Test, text: string): Promise<Running> {
  const lines: string[] = []
  const file = join(t.testdir({}), 'gateway.yaml')
  const write = (content: string): void => writeFileSync(file, content)
  write(text)
  const gateway = await Standalone.start({ file, env: { PORT: '0' }, logStream: { write: (line) => { lines.push(line) } } })
  t.teardown(async () => {
    gateway.stop()
    await gateway.stop()
  })
  return { gateway, origin: originOf(gateway.address), file, write, log: () => lines.join('') }
}

/** One group `chat` at `url`, keys with the secrets given (id and secret are the same). */
export function yaml (url: string, secrets: readonly string[], more = ''): string {
  return [
    `upstreams: { main: { url: "${url}", credential: upstream-secret } }`,
    'groups: { chat: { protocols: [chat_completions, responses], upstream: main } }',
    `keys: [${secrets.map((secret) => `{ id: ${secret}, group: chat, secret: ${secret} }`).join(', ')}]`,
    'state: { engine: memory }',
    more,
  ].join('\n')
}

export async function chat (origin: string, secret: string, body: object = {}): Promise<Response> {
  return await fetch(`${origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }], ...body }),
  })
}

export async function status (origin: string, secret: string): Promise<number> {
  const response = await chat(origin, secret)
  await response.text()
  return response.status
}
