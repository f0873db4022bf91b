import Fastify, { type FastifyInstance } from 'fastify'
import { auth, type AuthOptions, type GroupOptions } from '../../plugins/auth/index.js'
import { errors } from '../../plugins/errors/index.js'
import { joinGateway } from '../../plugins/core/gateway.js'
import { paths } from '../../plugins/paths/index.js'
import { everyProtocol } from '../helpers/gateway.js'

export const groups: Record<string, GroupOptions> = {
  chat: { protocols: ['chat_completions', 'responses', 'images'] },
  messages: { protocols: ['messages'] },
  gemini: { protocols: ['generate_content'] },
  embeddings: { protocols: ['embeddings'] },
  nothing: { protocols: [] },
  own: { protocols: everyProtocol, thirdParty: false },
  few: { protocols: everyProtocol, models: ['small'] },
}

const keys = [
  ...Object.keys(groups).map((group) => ({ id: group, group, secret: `sk-${group}` })),
  { id: 'off', group: 'chat', secret: 'sk-off', disabled: true },
  { id: 'old', group: 'chat', secret: 'sk-old', expires: '2020-01-01T00:00:00Z' },
  {
    id: 'young',
    group: 'chat',
    hash: 'sha256:7a2b8a9cbb0f0f9a2d9cbaf6b1c2b8dfb8b8ab3a0a6fd9b6d43c9d6a7a0b3c1d',
    expires: '2999-01-01T00:00:00Z',
  },
]

interface Rig {
  app: FastifyInstance
  counted: string[]
}

export async function build (
  t: { teardown: (close: () => unknown) => unknown }, options: Partial<AuthOptions> = {}, log: string[] = []
): Promise<Rig> {
  const app = Fastify({ logger: { level: 'trace', stream: { write: (line: string) => { log.push(line) } } } })
  t.teardown(() => app.close())
  const counted: string[] = []
  const gateway = joinGateway(app)
  gateway.recorder = {
    ...gateway.recorder,
    authFailed: (protocol, reason) => counted.push(`${protocol} ${reason}`),
    keyLookedUp: (result) => counted.push(result),
  }
  await app.register(paths)
  await app.register(errors)
  await app.register(auth, { groups, keys, ...options })
  app.all('/*', async (request) => ({ key: request.llm?.key?.id ?? null }))
  return { app, counted }
}

export interface Target {
  readonly family: 'openai' | 'anthropic' | 'gemini'
  readonly protocol: string
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly url: string
  readonly headers?: Record<string, string>
}

export const version = { 'anthropic-version': '2023-06-01' }
