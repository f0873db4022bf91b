/** What a measured gateway is put through: a reader that is slower than its upstream, and callers that leave. */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createServer, request as httpRequest, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname } from 'node:path'
import { secret } from '../helpers/gateway.js'
import type { Reading } from './measured-gateway.js'

const chat = JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'hi' }] })
const headers = { 'content-type': 'application/json', authorization: `Bearer ${secret}` }
const event =
  `data: ${JSON.stringify({
    id: 'c', model: 'm', choices: [{ index: 0, delta: { content: 'some words of text ' }, finish_reason: null }], usage: null,
  })}\n\n`
/** Ends within an event, as a piece of a real stream does. */
const piece = Buffer.from(event.repeat(Math.ceil(65_536 / event.length))).subarray(0, 65_536)
const lastEvents =
  `\n\ndata: ${JSON.stringify({
    id: 'c', model: 'm', choices: [], usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
  })}\n\ndata: [DONE]\n\n`

export class MeasuredGateway {
  private readonly child: ChildProcess
  private address = ''

  constructor (upstreamUrl: string, host: number | 'bare') {
    // Compiled or not, as this file is.
    const script = new URL(`measured-gateway${extname(import.meta.url)}`, import.meta.url)
    this.child = fork(script, [upstreamUrl, String(host)], { execArgv: ['--expose-gc', ...process.execArgv] })
  }

  async start (): Promise<void> {
    const exited = once(this.child, 'exit').then(() => { throw new Error('the gateway did not start') })
    const [{ address }] = await Promise.race([once(this.child, 'message'), exited])
    exited.catch(() => {})
    this.address = address
  }

  /** `collect` frees what is garbage before. */
  async read (collect: boolean): Promise<Reading> {
    const answer = once(this.child, 'message')
    this.child.send(collect)
    const [reading]: Reading[] = await answer
    if (reading === undefined) throw new Error('no reading')
    return reading
  }

  async chat (): Promise<IncomingMessage> {
    const request = httpRequest(`${this.address}/v1/chat/completions`, { method: 'POST', agent: false, headers })
    request.on('error', () => {})
    request.end(chat)
    const [reply]: IncomingMessage[] = await once(request, 'response')
    if (reply === undefined) throw new Error('no reply')
    reply.on('error', () => {})
    return reply
  }

  close (): void {
    this.child.disconnect()
  }
}

export interface LoadUpstream {
  readonly server: Server
  readonly url: string
  /** Bytes of all replies so far. */
  sent: number
}

/** Answers each request with `respond`. */
async function listenUpstream (respond: (upstream: LoadUpstream, res: ServerResponse) => void): Promise<LoadUpstream> {
  const server = createServer((req, res) => {
    req.resume().on('end', () => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      respond(upstream, res)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const upstream: LoadUpstream = { server, url: `http://127.0.0.1:${port}`, sent: 0 }
  return upstream
}

export interface SlowReading {
  /** Bytes that the upstream got rid of while its reader took none. */
  readonly aheadBytes: number
  /** Bytes that the gateway held then, garbage apart. */
  readonly heldBytes: number
  /** Growth of the gateway's process at its worst while the stream passed, garbage and all. */
  readonly grownBytes: number
  readonly readBytes: number
  readonly tokens: number
}

const pauseBytes = 4 * 1024 * 1024

/**
 * A stream of `megabytes`, whose reader stops at first, and reads haltingly then. What growth is: a process takes some 60 MB
 * for its first stream, with this package or without, and keeps it (buffers that wait to be collected, and the heap
 * that the allocator then has). So a stream of `warmUpMegabytes`, read the same way, comes before the first reading.
 */
export async function readSlowly (host: number | 'bare', megabytes: number, warmUpMegabytes: number): Promise<SlowReading> {
  let wanted = warmUpMegabytes * 1024 * 1024
  const upstream = await listenUpstream((upstream, res) => { writeStream(upstream, res, wanted).catch(() => {}) })
  const gateway = new MeasuredGateway(upstream.url, host)
  await gateway.start()
  await readHaltingly(gateway, await gateway.chat())
  const before = await settledReading(gateway, 1)
  wanted = megabytes * 1024 * 1024
  upstream.sent = 0
  const reply = await gateway.chat()
  const aheadBytes = await untilItStalls(upstream)
  const stalled = await leastReading(gateway)
  const { worst, readBytes } = await readHaltingly(gateway, reply)
  const { tokens } = await settledReading(gateway, 2)
  gateway.close()
  upstream.server.close()
  return {
    aheadBytes,
    heldBytes: stalled.arrayBuffers - before.arrayBuffers,
    grownBytes: Math.max(worst, stalled.rss) - before.rss,
    readBytes,
    tokens: tokens - before.tokens,
  }
}

async function readHaltingly (gateway: MeasuredGateway, reply: IncomingMessage): Promise<{ worst: number, readBytes: number }> {
  let worst = 0
  let readBytes = 0
  let readAtPause = 0
  for await (const chunk of reply) {
    readBytes += chunk.length
    if (readBytes - readAtPause < pauseBytes) continue
    readAtPause = readBytes
    worst = Math.max(worst, (await gateway.read(false)).rss)
  }
  return { worst, readBytes }
}

async function writeStream (upstream: LoadUpstream, res: ServerResponse, total: number): Promise<void> {
  const closed = once(res, 'close')
  for (let sent = 0; sent < total && !res.destroyed; sent += piece.length) {
    upstream.sent += piece.length
    if (!res.write(piece)) await Promise.race([new Promise((resolve) => res.once('drain', resolve)), closed])
  }
  res.end(lastEvents)
}

/** Waits until the upstream has not been able to send for a while. */
async function untilItStalls (upstream: LoadUpstream): Promise<number> {
  let sent = -1
  for (let still = 0; still < 20; still++) {
    if (upstream.sent !== sent) still = 0
    sent = upstream.sent
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return sent
}

export interface LeftBehind {
  readonly heapBytes: number
  readonly upstreamSockets: number
  /** Sockets and timers that the gateway has more of than before. */
  readonly resources: readonly string[]
  readonly settled: number
  readonly missing: Record<string, number>
}

/** `count` streams whose callers leave after their first piece. */
export async function abortStreams (host: number, count: number, atOnce: number): Promise<LeftBehind> {
  const sockets = new Set()
  const upstream = await listenUpstream((_, res) => { res.write(event.repeat(3)) })
  upstream.server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  const gateway = new MeasuredGateway(upstream.url, host)
  await gateway.start()
  const warmUp = Math.ceil(Math.min(count / 3, 500))
  await leave(gateway, warmUp, atOnce)
  const before = await idleReading(gateway, warmUp)
  await leave(gateway, count, atOnce)
  const after = await idleReading(gateway, warmUp + count)
  for (let tries = 0; sockets.size > 0 && tries < 500; tries++) await new Promise((resolve) => setTimeout(resolve, 10))
  gateway.close()
  upstream.server.close()
  return {
    heapBytes: after.heapUsed - before.heapUsed,
    upstreamSockets: sockets.size,
    resources: after.resources.filter((name) => !before.resources.includes(name)),
    settled: after.settled - before.settled,
    missing: after.missing,
  }
}

async function leave (gateway: MeasuredGateway, count: number, atOnce: number): Promise<void> {
  let started = 0
  await Promise.all(Array.from({ length: atOnce }, async () => {
    while (started < count) {
      started += 1
      const reply = await gateway.chat()
      await once(reply, 'data')
      reply.destroy()
    }
  }))
}

/** Garbage is swept beside the program: what is held is the least of some readings. */
async function leastReading (gateway: MeasuredGateway): Promise<Reading> {
  let least = await gateway.read(true)
  for (let tries = 0; tries < 10; tries++) {
    const reading = await gateway.read(true)
    if (reading.arrayBuffers < least.arrayBuffers) least = reading
  }
  return least
}

/** Once every request is settled and every connection closed. */
async function idleReading (gateway: MeasuredGateway, count: number): Promise<Reading> {
  let reading = await settledReading(gateway, count)
  while (reading.resources.includes('TCPSocketWrap')) reading = await gateway.read(true)
  return reading
}

async function settledReading (gateway: MeasuredGateway, count: number): Promise<Reading> {
  let reading = await gateway.read(true)
  while (reading.settled < count) reading = await gateway.read(true)
  return reading
}
