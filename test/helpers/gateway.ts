/** A gateway app for tests: the bundle in front of one upstream, with one key for each kind of caller. */
import { once } from 'node:events'
import { request as httpRequest, type ClientRequest, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import Fastify, { type FastifyInstance, type FastifyServerOptions } from 'fastify'
import { gatewayOf } from '../../plugins/core/gateway.js'
import { protocolNames, type ProtocolName } from '../../plugins/protocols/index.js'
import llmGateway, { type LlmGatewayOptions } from '../../plugins/index.js'
import type { ModelCall } from '../../plugins/core/call/model-call.js'
import { Signal } from './upstream.js'

interface Scope {
  teardown: (close: () => unknown) => unknown
}

export const everyProtocol: ProtocolName[] = [...protocolNames]

export const secret = 'sk-caller-0123456789'
export const providerSecret = 'provider-secret-9876543210'

export function gatewayOptions (upstreamUrl: string, options: Partial<LlmGatewayOptions> = {}): LlmGatewayOptions {
  return {
    upstreams: { main: { url: upstreamUrl, credential: providerSecret } },
    groups: { all: { protocols: everyProtocol } },
    keys: [{ id: 'caller', group: 'all', secret }],
    ...options,
  }
}

export interface Gateway {
  readonly app: FastifyInstance
  /** Every model request once it is settled. */
  readonly settled: Signal<ModelCall>
}

export async function startGateway (
  t: Scope, upstreamUrl: string, options: Partial<LlmGatewayOptions> = {}, server: FastifyServerOptions = {}
): Promise<Gateway> {
  const app = Fastify(server)
  await app.register(llmGateway, gatewayOptions(upstreamUrl, options))
  t.teardown(() => app.close())
  return { app, settled: watchSettled(app) }
}

export function watchSettled (app: FastifyInstance): Signal<ModelCall> {
  const settled = new Signal<ModelCall>()
  gatewayOf(app).settlement.onSettled((llm) => settled.push(llm))
  return settled
}

/** Listens on a free port and returns the address. */
export async function listen (app: FastifyInstance): Promise<string> {
  return await app.listen({ host: '127.0.0.1', port: 0 })
}

/** Resolves once the gateway has seen every caller go: a socket's other end knows of it later than the caller does. */
export async function callersGone ({ server }: FastifyInstance): Promise<void> {
  while (await connectionsTo(server) > 0) await wait(1)
}

async function connectionsTo (server: FastifyInstance['server']): Promise<number> {
  return await new Promise((resolve, reject) => server.getConnections((error, count) => error === null ? resolve(count) : reject(error)))
}

export interface Call {
  readonly request: ClientRequest
  /** The reply as soon as its headers are there. */
  readonly reply: Promise<IncomingMessage>
}

/** One request on a raw socket of its own, for what `fetch` hides: aborts, chunk boundaries, broken replies. */
export function call (
  url: string, { method = 'POST', headers = {}, body = '' }: { method?: string, headers?: OutgoingHttpHeaders, body?: string | Buffer } = {}
): Call {
  const request = httpRequest(url, {
    method, agent: false, headers: { 'content-type': 'application/json', authorization: `Bearer ${secret}`, ...headers },
  })
  const reply = once(request, 'response').then(([message]: IncomingMessage[]) => {
    if (message === undefined) throw new Error('no reply')
    return message
  })
  reply.catch(() => {})
  request.on('error', () => {})
  request.end(body)
  return { request, reply }
}

/** The bytes of a reply; `cut` where the socket broke before its end. */
export async function read (reply: IncomingMessage): Promise<{ bytes: Buffer, cut: boolean }> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of reply) chunks.push(chunk)
  } catch {
    return { bytes: Buffer.concat(chunks), cut: true }
  }
  return { bytes: Buffer.concat(chunks), cut: false }
}
