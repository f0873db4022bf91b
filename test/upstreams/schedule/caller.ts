/** A caller on a socket of its own, who leaves when a schedule says so, and keeps each byte that came. */
import { connect } from 'node:net'
import { secret } from '../../helpers/gateway.js'

/** When a caller leaves: so long after it asked, or once so many bytes of its reply came. Null: it stays. */
export type Leaving = { readonly afterMs: number } | { readonly afterBytes: number } | null

export interface Ask {
  readonly tag: string
  readonly protocol: 'chat' | 'messages' | 'responses'
  readonly stream: boolean
  readonly model: string
  readonly leaves: Leaving
}

export interface Heard {
  readonly left: boolean
  readonly bytes: Buffer
  /** How many attempts had arrived when the first byte came. */
  readonly arrivedBefore: number
}

const paths = { chat: '/v1/chat/completions', messages: '/v1/messages', responses: '/v1/responses' }

export function bodyOf ({ tag, protocol, stream, model }: Ask): string {
  const messages = [{ role: 'user', content: `${tag}.` }]
  if (protocol === 'responses') return JSON.stringify({ model, stream, input: `${tag}.` })
  return JSON.stringify({
    model, stream, ...protocol === 'messages' ? { max_tokens: 9 } : stream && { stream_options: { include_usage: true } }, messages,
  })
}

export async function hear (origin: string, ask: Ask, arrived: () => number): Promise<Heard> {
  const body = bodyOf(ask)
  const lines = [
    `POST ${paths[ask.protocol]} HTTP/1.1`, 'host: gateway', 'connection: close', 'content-type: application/json',
    'anthropic-version: 2023-06-01',
    `authorization: Bearer ${secret}`, `content-length: ${Buffer.byteLength(body)}`, '', body,
  ]
  const socket = connect(Number(new URL(origin).port), '127.0.0.1', () => socket.write(lines.join('\r\n')))
  const chunks: Buffer[] = []
  let [left, length, arrivedBefore] = [false, 0, 0]
  const leave = (): void => {
    left = true
    socket.destroy()
  }
  const timer = ask.leaves !== null && 'afterMs' in ask.leaves ? setTimeout(leave, ask.leaves.afterMs) : undefined
  socket.on('error', () => {})
  socket.on('data', (chunk) => {
    if (length === 0) arrivedBefore = arrived()
    chunks.push(chunk)
    length += chunk.length
    if (ask.leaves !== null && 'afterBytes' in ask.leaves && length >= ask.leaves.afterBytes) leave()
  })
  await new Promise((resolve) => socket.once('close', resolve))
  clearTimeout(timer)
  return { left, bytes: Buffer.concat(chunks), arrivedBefore }
}

export interface Reply {
  readonly status: number
  readonly mark: string | null
  readonly body: Buffer
  /** It ended as its framing says. */
  readonly clean: boolean
  /** Bytes behind its end. */
  readonly rest: number
}

/** Null where not even a head came. Throws where it is no HTTP. */
export function parseReply (bytes: Buffer): Reply | null {
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0) return null
  const [first = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n')
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(first)?.[1])
  if (!(status > 0)) throw new Error(`no reply: ${first}`)
  const headers = new Map(lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]))
  const head = { status, mark: headers.get('x-mark') ?? null }
  const raw = bytes.subarray(end + 4)
  if (headers.get('transfer-encoding') === 'chunked') return { ...head, ...dechunk(raw) }
  const length = Number(headers.get('content-length'))
  return { ...head, body: raw.subarray(0, length), clean: raw.length >= length, rest: Math.max(0, raw.length - length) }
}

function dechunk (raw: Buffer): Pick<Reply, 'body' | 'clean' | 'rest'> {
  const parts: Buffer[] = []
  let at = 0
  for (;;) {
    const line = raw.indexOf('\r\n', at)
    if (line < 0) return { body: Buffer.concat(parts), clean: false, rest: 0 }
    const length = Number.parseInt(raw.toString('latin1', at, line), 16)
    if (length === 0) return { body: Buffer.concat(parts), clean: raw.length >= line + 4, rest: Math.max(0, raw.length - line - 4) }
    parts.push(raw.subarray(line + 2, line + 2 + length))
    at = line + 2 + length + 2
    if (at > raw.length) return { body: Buffer.concat(parts), clean: false, rest: 0 }
  }
}
