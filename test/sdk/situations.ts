/** What happens to every client at every base address. Each throws where a client would be left without its own terms. */
import { ok, equal, match } from 'node:assert/strict'
import { replyFixture, type Script, type UpstreamRequest } from '../helpers/upstream.js'
import type { Client, Session } from './client.js'
import { key, refusedKey, type Setup } from './gateway.js'

export interface Bench extends Setup {
  readonly client: Client
  readonly base: string
}

export const hello = 'Hello from upstream 👋'

function open ({ client, origin, base }: Bench, secret = key): Session {
  return client.connect(origin + base, secret)
}

async function textOf (stream: AsyncIterable<string>): Promise<string> {
  let text = ''
  for await (const piece of stream) text += piece
  return text
}

async function failureOf (work: Promise<unknown>): Promise<Error> {
  try {
    await work
  } catch (error) {
    return error instanceof Error ? error : new Error(JSON.stringify(error))
  }
  throw new Error('the client saw no failure')
}

interface Told { status?: unknown, statusCode?: unknown, lastError?: unknown, cause?: unknown }

/** The HTTP status that a client's error carries, wherever it keeps it. */
function statusOf (error: unknown): number {
  if (typeof error !== 'object' || error === null) return 0
  const { status, statusCode, lastError, cause }: Told = error
  if (typeof status === 'number') return status
  return typeof statusCode === 'number' ? statusCode : statusOf(lastError ?? cause)
}

function expectClass ({ classes }: Client, status: number, error: Error): void {
  const wanted = classes[status]
  const names = [error.constructor.name, error.name]
  ok(wanted === undefined || names.includes(wanted), `${names.join(', ')} instead of ${wanted}`)
}

async function expectRefused (bench: Bench, secret: string, status: number, said: RegExp): Promise<void> {
  const before = bench.upstream.seen.length
  const error = await failureOf(open(bench, secret).call())
  equal(statusOf(error), status)
  match(error.message, said)
  expectClass(bench.client, status, error)
  equal(bench.upstream.seen.length, before, 'the upstream got the request')
}

const bodies: Readonly<Record<string, (status: number) => object>> = {
  messages: () => ({ type: 'error', error: { type: 'overloaded_error', message: 'upstream is busy' }, request_id: 'req_1' }),
  generate_content: (code) => ({ error: { code, message: 'upstream is busy', status: 'RESOURCE_EXHAUSTED' } }),
}
const openaiBody = (): object => ({
  error: { message: 'upstream is busy', type: 'rate_limit_error', param: null, code: 'rate_limit_exceeded' },
})

async function expectUpstreamError (bench: Bench, status: number, headers: Record<string, string>): Promise<void> {
  const { client, upstream } = bench
  const before = upstream.seen.length
  const reply: Script = { status, headers, body: (bodies[client.protocol] ?? openaiBody)(status) }
  upstream.respond = () => reply
  const error = await failureOf(open(bench).call())
  equal(statusOf(error), status)
  match(error.message, /upstream is busy/)
  expectClass(client, status, error)
  equal(upstream.seen.length - before, client.retries ? 2 : 1, 'requests at the upstream')
}

async function expectRetryAfter (bench: Bench): Promise<void> {
  const { client, upstream } = bench
  if (!client.retries) return await expectUpstreamError(bench, 429, { 'retry-after': '1' })
  const at: number[] = []
  upstream.respond = (): Script | null => {
    at.push(performance.now())
    return at.length === 1 ? { status: 429, headers: { 'retry-after': '1', 'retry-after-ms': '150' }, body: openaiBody() } : null
  }
  equal(await open(bench).call(), hello)
  const [first = 0, second = 0] = at
  ok(second - first >= 145, `waited ${Math.round(second - first)} ms of 150`)
}

const streamFixture: Readonly<Record<Client['protocol'], string>> = {
  chat_completions: 'chat_completions.sse',
  responses: 'responses.sse',
  messages: 'messages.sse',
  generate_content: 'generate_content.stream.sse',
}

/** Bytes of the stream up to and with its first piece of text. */
function beginning (protocol: Client['protocol']): string {
  const text = replyFixture(streamFixture[protocol]).toString()
  const at = text.indexOf('Hello')
  const end = /\r\n\r\n|\n\n/.exec(text.slice(at))
  return text.slice(0, at + (end?.index ?? 0) + (end?.[0].length ?? 0))
}

const brokenOff: Readonly<Record<Client['protocol'], string>> = {
  chat_completions: `data: ${JSON.stringify({
    error: { message: 'upstream broke', type: 'server_error', code: 'server_error', param: null },
  })}\n\n`,
  responses: 'event: response.failed\n' +
    `data: ${JSON.stringify({
      type: 'response.failed',
      sequence_number: 9,
      response: {
        id: 'resp_upstream_2',
        object: 'response',
        created_at: 1,
        model: 'model-1',
        output: [],
        status: 'failed',
        error: { code: 'server_error', message: 'upstream broke' },
      },
    })}\n\n`,
  messages: `event: error\ndata: ${JSON.stringify({ type: 'error', error: { type: 'api_error', message: 'upstream broke' } })}\n\n`,
  generate_content: `data: ${JSON.stringify({ error: { code: 500, message: 'upstream broke', status: 'INTERNAL' } })}\r\n\r\n`,
}

async function expectStreamFailure (bench: Bench, script: Script, said: RegExp): Promise<void> {
  bench.upstream.queue({ headers: { 'content-type': 'text/event-stream' }, ...script })
  const pieces: string[] = []
  const error = await failureOf((async () => {
    for await (const piece of open(bench).stream()) pieces.push(piece)
  })())
  match(error.message, said)
  equal(pieces.join(''), 'Hello')
}

async function expectAbort (bench: Bench): Promise<void> {
  const { client, upstream } = bench
  while (upstream.requests.size > 0) await upstream.requests.next()
  upstream.queue({
    headers: { 'content-type': 'text/event-stream' },
    body: beginning(client.protocol) + ' ',
    stallAt: Buffer.byteLength(beginning(client.protocol)),
  })
  const caller = new AbortController()
  const pieces: string[] = []
  const reading = failureOf((async () => {
    for await (const piece of open(bench).stream(caller.signal)) {
      pieces.push(piece)
      if (piece !== '') caller.abort()
    }
    throw new Error('ended')
  })())
  const request: UpstreamRequest = await upstream.requests.next()
  await reading
  equal(await request.aborted, true)
}

async function expectKeepAlive (bench: Bench): Promise<void> {
  const { client: { protocol }, upstream } = bench
  const body = replyFixture(streamFixture[protocol]).toString().replaceAll(/(\r\n\r\n|\n\n)/g, '$1: keepalive$1')
  upstream.queue({ headers: { 'content-type': 'text/event-stream' }, body, split: 'events' })
  equal(await textOf(open(bench).stream()), hello)
}

export const situations: Readonly<Record<string, (bench: Bench) => Promise<void>>> = {
  call: async (bench) => equal(await open(bench).call(), hello),
  stream: async (bench) => equal(await textOf(open(bench).stream()), hello),
  'keep-alive comments': expectKeepAlive,
  'wrong key': async (bench) => await expectRefused(bench, 'sk-suite-wrong', 401, /Incorrect API key provided/),
  'refused group': async (bench) => await expectRefused(bench, refusedKey, 403, /This API key may not/),
  'upstream 429 with retry-after': expectRetryAfter,
  'upstream 529': async (bench) => await expectUpstreamError(bench, 529, { 'retry-after-ms': '1' }),
  'error in the stream': async (bench) => {
    const { protocol } = bench.client
    await expectStreamFailure(bench, { body: beginning(protocol) + brokenOff[protocol], split: 'events' }, /upstream broke/)
  },
  'cut stream': async (bench) => {
    const { protocol } = bench.client
    const body = beginning(protocol)
    await expectStreamFailure(bench, { body, cutAt: Buffer.byteLength(body) }, /model provider|terminated|aborted|message_stop/)
  },
  abort: expectAbort,
}
