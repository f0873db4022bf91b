/**
 * The mock upstream, a process of its own. It speaks just enough HTTP/1.1 over raw sockets to cost far less than any
 * gateway in front of it, answers with bytes made at start, and counts what reached it.
 */
import { createServer, type Socket } from 'node:net'
import { pollSockets } from './load/poll.js'
import { callerKey, makeWorks, upstreamKey, type Work } from './work.js'

export interface UpstreamCounts {
  requests: number
  /** Requests whose body was not byte for byte the caller's. */
  altered: number
  /** Requests that carried the upstream's own credential. */
  swapped: number
  /** Requests that still carried the caller's. */
  leaked: number
  /** Writes of body bytes. */
  writes: number
  open: number
  /** Processor time of the mock itself, microseconds. */
  cpuUs: number
}

const works = makeWorks()
const counts: UpstreamCounts = { requests: 0, altered: 0, swapped: 0, leaked: 0, writes: 0, open: 0, cpuUs: 0 }
const vendorHeaders = 'openai-version: 2020-10-01\r\nopenai-processing-ms: 12\r\nx-request-id: req_bench0123456789\r\n' +
  'x-ratelimit-remaining-requests: 9999\r\nx-ratelimit-remaining-tokens: 1999999\r\n'

const wholeReplies = new Map([...works.values()].map(work => [work, Buffer.concat([
  Buffer.from(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n${vendorHeaders}content-length: ${work.reply.length}\r\n\r\n`),
  work.reply,
])]))
const streamHead = Buffer.from(
  `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n${vendorHeaders}transfer-encoding: chunked\r\n\r\n`
)
const chunks = new Map([...works.values()].map(work => [work, work.pieces.map((piece, at) => Buffer.concat([
  at === 0 ? streamHead : Buffer.alloc(0),
  Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n'),
  Buffer.from(at === work.pieces.length - 1 ? '0\r\n\r\n' : ''),
]))]))

interface Stream {
  readonly socket: Socket
  readonly pieces: readonly Buffer[]
  next: number
}

/** Writes the next piece. False when the stream is over, at its end or because its reader left. */
function advance (stream: Stream): boolean {
  const piece = stream.pieces[stream.next]
  if (piece === undefined || stream.socket.destroyed) return false
  stream.socket.write(piece)
  counts.writes += 1
  stream.next += 1
  return stream.next < stream.pieces.length
}

const held = new Set<Stream>()

function answer (socket: Socket, work: Work): void {
  const { delivery } = work
  if (delivery.kind === 'whole') {
    socket.write(wholeReplies.get(work) ?? streamHead)
    counts.writes += 1
    return
  }
  const stream: Stream = { socket, pieces: chunks.get(work) ?? [], next: 0 }
  advance(stream)
  if (delivery.kind === 'held') {
    held.add(stream)
    socket.once('close', () => held.delete(stream))
  } else if (delivery.gapMs === 0) {
    while (advance(stream));
  } else {
    const timer = setInterval(() => { if (!advance(stream)) clearInterval(timer) }, delivery.gapMs)
  }
}

/** Every held stream gets its next event; `last` sends all that remain. */
function releaseHeld (last: boolean): void {
  for (const stream of held) {
    const events = last ? stream.pieces.length - stream.next : 1
    for (let sent = 0; sent < events; sent++) advance(stream)
    if (last) held.delete(stream)
  }
}

function modelIn (text: string): string | undefined {
  return /"model"\s*:\s*"(bench-[^"]+)"/.exec(text)?.[1]
}

function received (socket: Socket, head: Buffer, body: Buffer): void {
  // A peer may write the body anew, with its fields in another order.
  const name = modelIn(body.toString('latin1', 0, 200)) ?? modelIn(body.toString('latin1')) ?? ''
  const work = works.get(name)
  if (work === undefined) {
    socket.end('HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n')
    return
  }
  counts.requests += 1
  if (!body.equals(work.request)) counts.altered += 1
  if (head.includes(upstreamKey)) counts.swapped += 1
  if (head.includes(callerKey)) counts.leaked += 1
  answer(socket, work)
}

const headEnd = Buffer.from('\r\n\r\n')

/** Length of the message at the start of `bytes`, or null while it is incomplete. */
function messageEnd (bytes: Buffer, headLength: number): number | null {
  const head = bytes.toString('latin1', 0, headLength)
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)
  if (length !== null) return headLength + Number(length[1])
  if (!/\r\ntransfer-encoding: *chunked/i.test(head)) return headLength
  const last = bytes.indexOf('\r\n0\r\n\r\n', headLength - 2)
  return last < 0 ? null : last + 7
}

function plainBody (head: Buffer, body: Buffer): Buffer {
  if (!/\r\ntransfer-encoding: *chunked/i.test(head.toString('latin1'))) return body
  const parts: Buffer[] = []
  let at = 0
  for (;;) {
    const lineEnd = body.indexOf('\r\n', at)
    const size = parseInt(body.toString('latin1', at, lineEnd), 16)
    if (!(size > 0)) return Buffer.concat(parts)
    parts.push(body.subarray(lineEnd + 2, lineEnd + 2 + size))
    at = lineEnd + 4 + size
  }
}

const sockets = new Set<Socket>()

const server = createServer({ noDelay: true }, socket => {
  let parts: Buffer[] = []
  let size = 0
  let expected = 0
  sockets.add(socket)
  socket.on('close', () => sockets.delete(socket))
  socket.on('error', () => socket.destroy())
  socket.on('data', (chunk: Buffer) => {
    parts.push(chunk)
    size += chunk.length
    if (size < expected) return
    let bytes = parts.length === 1 ? chunk : Buffer.concat(parts)
    for (;;) {
      const split = bytes.indexOf(headEnd)
      const end = split < 0 ? null : messageEnd(bytes, split + 4)
      if (end === null || end > bytes.length) {
        expected = end ?? 0
        break
      }
      const head = bytes.subarray(0, split + 4)
      received(socket, head, plainBody(head, bytes.subarray(split + 4, end)))
      bytes = bytes.subarray(end)
      expected = 0
      if (bytes.length === 0) break
    }
    parts = bytes.length === 0 ? [] : [bytes]
    size = bytes.length
  })
})

server.listen({ port: Number(process.env['BENCH_PORT'] ?? 0), host: '127.0.0.1', backlog: 4096 }, () => {
  const address = server.address()
  process.send?.({ port: typeof address === 'object' && address !== null ? address.port : 0 })
})

let endPolling = (): void => {}

process.on('message', message => {
  endPolling()
  if (message === 'poll') endPolling = pollSockets()
  if (message === 'tick' || message === 'release') releaseHeld(message === 'release')
  if (message === 'hang up') for (const socket of sockets) socket.end()
  counts.open = sockets.size
  const { user, system } = process.cpuUsage()
  counts.cpuUs = user + system
  process.send?.({ counts })
})
process.on('disconnect', () => process.exit(0))
