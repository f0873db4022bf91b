/** HTTP by hand on a socket, for what every client library makes right: doubled headers, odd targets, upgrades, broken bodies. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

export interface RawReply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** One connection. Replies are read in the order in which they come; only those with a length or without a body. */
export class Wire {
  readonly socket: Socket
  #bytes = ''
  #ended = false
  #wake: () => void = () => {}

  constructor (url: string) {
    const { hostname, port } = new URL(url)
    this.socket = connect(Number(port), hostname)
    this.socket.setEncoding('latin1')
    this.socket.on('data', (text: string) => { this.#bytes += text; this.#wake() })
    this.socket.on('close', () => { this.#ended = true; this.#wake() })
    this.socket.on('error', () => {})
  }

  send (text: string | Buffer): void {
    this.socket.write(text)
  }

  /** `lines` are the request line and the headers. */
  ask (lines: readonly string[], body = ''): Promise<RawReply> {
    this.send([...lines, ...(body === '' ? [] : [`content-length: ${Buffer.byteLength(body)}`]), '', body].join('\r\n'))
    return this.reply()
  }

  /** The next reply; rejects where the connection ends before it is complete. */
  async reply (): Promise<RawReply> {
    for (;;) {
      const found = this.#take()
      if (found !== null) return found
      if (this.#ended) throw new Error(`the connection ended after ${JSON.stringify(this.#bytes)}`)
      await new Promise<void>((resolve) => { this.#wake = resolve })
    }
  }

  #take (): RawReply | null {
    const end = this.#bytes.indexOf('\r\n\r\n')
    if (end < 0) return null
    const [first = '', ...lines] = this.#bytes.slice(0, end).split('\r\n')
    const headers = Object.fromEntries(lines.map((line) => [
      line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim(),
    ]))
    const status = Number(first.split(' ')[1])
    const chunked = headers['transfer-encoding'] === 'chunked'
    const until = chunked
      ? this.#bytes.indexOf('\r\n0\r\n\r\n', end) + 7
      : end + 4 + (status === 100 ? 0 : Number(headers['content-length'] ?? 0))
    if (this.#bytes.length < until || (chunked && until < end)) return null
    const body = this.#bytes.slice(end + 4, until)
    this.#bytes = this.#bytes.slice(until)
    return { status, headers, body }
  }

  /** Bytes that came and are no part of a reply that was taken. */
  get unread (): number {
    return this.#bytes.length
  }

  async closed (): Promise<void> {
    if (!this.#ended) await once(this.socket, 'close')
  }

  destroy (): void {
    this.socket.destroy()
  }
}

/** One request on a connection of its own. */
export async function askOnce (url: string, lines: readonly string[], body = ''): Promise<RawReply> {
  const wire = new Wire(url)
  try {
    return await wire.ask(lines, body)
  } finally {
    wire.destroy()
  }
}
