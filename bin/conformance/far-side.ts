/** The kit's own provider: gives the plainest answer for every protocol, records what arrives, and plays scripts. */
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { nativeReply } from './replies.js'
import type { Script } from './script.js'

export interface Seen {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  /** All header names and values as one text, to search for secrets. */
  readonly headerText: string
  readonly body: Buffer
  /** Resolves when the exchange is over. */
  readonly over: Promise<void>
}

export class FarSide {
  /** Requests since the last `reset()`. */
  seen: Seen[] = []
  #script: Script | null = null
  #waiting: Array<(seen: Seen) => void> = []
  readonly #server: Server = createServer((req, res) => {
    // If a gateway breaks off in the middle of a body, its connection is cut.
    this.#answer(req, res).catch(() => res.destroy())
  })

  async listen (port: number): Promise<void> {
    this.#server.listen(port, '127.0.0.1')
    await once(this.#server, 'listening')
  }

  /** Addresses of those requests. */
  get urls (): string {
    return this.seen.map(({ url }) => url).join(', ')
  }

  get listening (): boolean {
    return this.#server.listening
  }

  /** Forgets requests and script. */
  reset (): void {
    this.seen = []
    this.#script = null
    this.#waiting = []
  }

  /** Every request until `reset()` gets this reply. */
  play (script: Script): void {
    this.#script = script
  }

  /** The next request that arrives. */
  async arrival (): Promise<Seen> {
    return await new Promise((resolve) => this.#waiting.push(resolve))
  }

  async close (): Promise<void> {
    if (!this.listening) return
    const closed = new Promise((resolve) => this.#server.close(resolve))
    this.#server.closeAllConnections()
    await closed
  }

  async #answer (req: IncomingMessage, res: ServerResponse): Promise<void> {
    const over = new Promise<void>((resolve) => res.once('close', resolve))
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(chunk)
    const { method = '', url = '', headers, rawHeaders } = req
    const seen: Seen = { method, url, headers, headerText: rawHeaders.join('\n'), body: Buffer.concat(chunks), over }
    this.seen.push(seen)
    for (const resolve of this.#waiting.splice(0)) resolve(seen)
    await playScript(res, this.#script ?? nativeReply(seen))
  }
}

async function playScript (res: ServerResponse, script: Script): Promise<void> {
  if (script.then === 'reset') {
    res.socket?.resetAndDestroy()
    return
  }
  res.writeHead(script.status ?? 200, { 'content-type': 'application/json', ...script.headers })
  res.flushHeaders()
  for (const [index, piece] of script.pieces.entries()) {
    await script.before?.(index)
    res.write(piece)
    await new Promise(setImmediate)
  }
  if (script.then === 'cut') res.socket?.destroySoon()
  else res.end()
}
