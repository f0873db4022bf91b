/**
 * An upstream inside the process, for trying the gateway without a provider: it answers every endpoint on a loopback socket, so that
 * everything between it and the caller is as with a real one.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text as readText } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { createResolve, type Resolved } from '../core/url/resolve.js'
import { familyOf, type ErrorKind, type Family } from '../protocols/index.js'
import { field } from '../protocols/simulate-text.js'
import { simulations, type Ask, type SimulatedEvent } from '../protocols/simulate.js'
import { boundAddress } from './front.js'

export interface Simulator {
  readonly url: string
  /** Made at start: a request without it is refused, which shows that the caller's own key was replaced. */
  readonly credential: string
  readonly close: () => Promise<void>
}

interface SimulatorOptions {
  /** Pause before each event of a stream, in milliseconds. Default 15. */
  readonly eventDelayMs?: number
}

const resolve = createResolve('')

export async function startSimulator ({ eventDelayMs = 15 }: SimulatorOptions = {}): Promise<Simulator> {
  const credential = randomBytes(24).toString('base64url')
  const server = createServer((request, response) => {
    answer(request, response, credential, eventDelayMs).catch(() => response.destroy())
  })
  // Not shared: workers of one cluster would share the port, and refuse each other's credentials.
  server.listen({ host: '127.0.0.1', port: 0, exclusive: true })
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${boundAddress(server).port}`,
    credential,
    close: async () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

async function answer (request: IncomingMessage, response: ServerResponse, credential: string, eventDelayMs: number): Promise<void> {
  const resolution = resolve(String(request.method), String(request.url), request.headers)
  if (resolution?.kind !== 'endpoint') {
    refuse(response, resolution?.family ?? familyOf({ headers: request.headers }), 'not_found', 404)
    return
  }
  const { endpoint, url } = resolution
  const [header, value] = endpoint.family.upstreamHeader(credential)
  if (request.headers[header] !== value) {
    refuse(response, endpoint.family, 'authentication', 401)
    return
  }
  const text = await readText(request)
  const ask = askOf(resolution, endpoint.method === 'GET' ? queryOf(url) : parse(text))
  response.setHeader('x-request-id', `req_${ask.id}`)
  const simulation = simulations.get(endpoint.id)
  const streamed = endpoint.streams === 'path' || String(field(ask.body, 'stream')) === 'true'
  const events = streamed ? simulation?.events?.(ask) : undefined
  if (events === undefined) sendJson(response, 200, simulation?.reply(ask))
  else await sendEvents(response, events, eventDelayMs, endpoint.streams !== 'path' || /[?&]alt=sse(?:&|$)/.test(url))
}

function askOf ({ endpoint, model, url }: Resolved, body: unknown): Ask {
  const at = endpoint.tail.indexOf(':id')
  return {
    id: randomBytes(12).toString('hex'),
    named: at < 0 ? null : String(url.split(/[/?]/)[at + 2]),
    createdAt: Math.floor(Date.now() / 1000),
    model: model ?? String(field(body, 'model') ?? 'simulated'),
    body,
  }
}

/** A form tells only whether its reply is streamed; nothing else of it is read. */
function parse (body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    return { stream: /name="?stream"?(?:\r\n[^\r\n]+)*\r\n\r\ntrue\r\n/.test(body) }
  }
}

function queryOf (url: string): unknown {
  return Object.fromEntries(new URL(url, 'http://simulated').searchParams)
}

function sendJson (response: ServerResponse, status: number, body: unknown): void {
  const bytes = Buffer.from(JSON.stringify(body))
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': bytes.length }).end(bytes)
}

function refuse (response: ServerResponse, family: Family, kind: ErrorKind, status: number): void {
  const message = 'The simulated upstream does not answer this request.'
  sendJson(response, status, family.errorBody({ status, kind, code: kind, message, param: null, requestId: 'simulated' }))
}

async function sendEvents (response: ServerResponse, events: readonly SimulatedEvent[], delayMs: number, sse: boolean): Promise<void> {
  response.writeHead(200, { 'content-type': sse ? 'text/event-stream; charset=utf-8' : 'application/json; charset=utf-8' })
  await pipeline(sse ? asEventStream(events, delayMs) : asArray(events, delayMs), response)
}

async function * asEventStream (events: readonly SimulatedEvent[], delayMs: number): AsyncGenerator<string> {
  for (const { event, data } of events) {
    await pause(delayMs)
    const name = event === undefined ? '' : `event: ${event}\n`
    yield `${name}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`
  }
}

async function * asArray (events: readonly SimulatedEvent[], delayMs: number): AsyncGenerator<string> {
  let separator = '['
  for (const { data } of events) {
    await pause(delayMs)
    yield separator + JSON.stringify(data)
    separator = ',\r\n'
  }
  yield ']'
}
