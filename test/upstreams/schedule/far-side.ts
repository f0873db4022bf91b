/** Members of a pool that do with each attempt what a schedule says, and keep what they got and what they said. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import { said, type Piece } from './words.js'

/** What becomes of one attempt. `part`: how much of the reply is sent before. */
export type Step =
  | { readonly does: 'answers' | 'fails_first' | 'is_odd', readonly delayMs: number, readonly betweenMs: number }
  | { readonly does: 'refuses', readonly status: number, readonly long: boolean, readonly delayMs: number, readonly betweenMs: number }
  | { readonly does: 'cuts' | 'stalls', readonly part: number | 'nothing', readonly delayMs: number, readonly betweenMs: number }

/** One attempt, as its member saw it. */
export interface Arrival {
  /** Of the request, as its caller wrote it. */
  readonly tag: string
  /** Stands in each piece of the reply and in none of another one. */
  readonly mark: string
  readonly member: string
  readonly body: string
  readonly secret: string
  readonly step: Step
  /** What the whole reply would be. */
  pieces: readonly Piece[]
  status: number
  sentBytes: number
  /** The last byte was sent. */
  whole: boolean
}

/** Of the request with this tag, its `attempt`th, from 0. */
export type StepOf = (tag: string, attempt: number) => Step

export class FarSide {
  readonly arrivals: Arrival[] = []
  stepOf: StepOf = () => ({ does: 'answers', delayMs: 0, betweenMs: 0 })
  readonly #servers: Server[] = []
  readonly #over = new AbortController()

  /** The address of one more member. */
  async add (name: string): Promise<string> {
    const server = createServer((req, res) => { this.#serve(name, req, res).catch(() => res.destroy()) })
    this.#servers.push(server)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const address = server.address()
    return `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`
  }

  of (tag: string): Arrival[] {
    return this.arrivals.filter((arrival) => arrival.tag === tag)
  }

  async close (): Promise<void> {
    this.#over.abort()
    await Promise.all(this.#servers.map(async (server) => {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    }))
  }

  async #serve (member: string, req: IncomingMessage, res: ServerResponse): Promise<void> {
    const body = await text(req)
    const tag = /r\d+(?=\.)/.exec(body)?.[0] ?? ''
    const attempt = this.of(tag).length
    const step = this.stepOf(tag, attempt)
    const mark = `${tag}.a${attempt}`
    const arrival: Arrival = {
      tag,
      mark,
      member,
      body,
      secret: String(req.headers['x-api-key'] ?? req.headers.authorization).replace('Bearer ', ''),
      step,
      pieces: [],
      status: 0,
      sentBytes: 0,
      whole: false,
    }
    this.arrivals.push(arrival)
    await wait(step.delayMs)
    if (res.destroyed) return
    if (step.does === 'is_odd') req.socket.end('WHAT IS THIS\r\n\r\n')
    else if ((step.does === 'cuts' || step.does === 'stalls') && step.part === 'nothing') {
      if (step.does === 'cuts') res.destroy()
    } else await this.#reply(arrival, String(req.url), res)
  }

  async #reply (arrival: Arrival, url: string, res: ServerResponse): Promise<void> {
    const { step, mark, body } = arrival
    const reply = said(url, JSON.parse(body), mark, step)
    arrival.pieces = reply.pieces
    arrival.status = reply.status
    const part = step.does === 'cuts' || step.does === 'stalls' ? step.part : 1
    const length = reply.pieces.reduce((sum, { bytes }) => sum + bytes.length, 0)
    let left = Math.floor(length * Number(part))
    res.writeHead(reply.status, { 'content-type': reply.type, 'x-mark': mark, ...reply.headers })
    res.flushHeaders()
    for (const { bytes } of reply.pieces) {
      const now = bytes.subarray(0, left)
      if (now.length === 0 || res.destroyed) break
      res.write(now)
      arrival.sentBytes += now.length
      left -= now.length
      if (step.betweenMs > 0) await wait(step.betweenMs, undefined, { signal: this.#over.signal })
    }
    if (step.does === 'stalls' || res.destroyed) return
    if (step.does === 'cuts') res.socket?.destroySoon()
    else {
      arrival.whole = true
      res.end()
    }
  }
}
