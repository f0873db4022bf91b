import { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { joined } from '../core/body/bytes.js'
import { cutReply } from '../core/reply/cut-reply.js'

/** A shorter piece may be one event, for which the caller waits. Longer pieces of one read are gathered, which is cheaper. */
const eventBytes = 4 * 1024

/** Where a body's bytes come from. */
export interface Source {
  /** More can be taken. */
  wanted: () => void
  /** No more until then. */
  full: () => void
  /** The body is no longer read, or has ended. */
  callerGone: () => void
}

/**
 * The body of a reply that does not come in one piece. For a host's hooks it is a stream like any other. Piped into the
 * response itself, as the framework does with a stream that no hook replaced, it writes there without the stream's
 * machinery, and what one read of the upstream's socket brought goes out as one write.
 */
export class ReplyBody extends Readable {
  readonly #source: Source
  #response: ServerResponse | null = null
  #pending: Buffer[] = []
  /** The last read brought several pieces, which are cheaper as one. */
  #gathers = false
  #over = false

  constructor (source: Source) {
    super({ highWaterMark: 64 * 1024 })
    this.#source = source
  }

  /** False if the caller takes no more for now. */
  pass (chunk: Buffer): boolean {
    const response = this.#response
    if (response === null) return this.push(chunk)
    // Node corks a socket from a write to the end of the turn.
    if (chunk.length < eventBytes && !this.#gathers && response.socket?.writableCorked === 0) return response.write(chunk)
    this.#gathers = true
    if (this.#pending.push(chunk) === 1) process.nextTick(flush, this)
    return true
  }

  /** That was all. */
  finish (): void {
    this.#over = true
    if (this.#response !== null) {
      this.#response.end(this.#take())
      this.resume()
    }
    this.push(null)
  }

  /** There is no more, and it is not whole. */
  cut (reply: FastifyReply, error: Error): void {
    // After it, nothing is written any more.
    this.flush()
    cutReply(reply)
    this.destroy(error)
  }

  override pipe<T extends NodeJS.WritableStream> (destination: T, options?: { end?: boolean }): T {
    // Trailers are added once a stream has ended, which ours tells after it has ended the reply.
    if (!(destination instanceof ServerResponse) || options?.end === false || this.#over || destination.hasHeader('trailer')) {
      return super.pipe(destination, options)
    }
    this.#response = destination
    // Not at once: Node also emits this while a later reply on the same connection grows, from within its reading.
    destination.on('drain', () => process.nextTick(want, this.#source))
    if (this.readableLength === 0) destination.flushHeaders()
    for (let chunk: unknown = this.read(); chunk instanceof Buffer; chunk = this.read()) this.pass(chunk)
    return destination
  }

  override _read (): void {
    // Not at once: newer bytes would overtake those that are just being read.
    process.nextTick(want, this.#source)
  }

  override _destroy (error: Error | null, callback: (error: Error | null) => void): void {
    if (error !== null) {
      // A hook of the host's may still wait, with no listener yet, and an unhandled error ends the process. The framework has sent
      // nothing by then and can still report the failure.
      this.on('error', ignore)
      this.#over = true
    }
    this.#pending = []
    this.#source.callerGone()
    callback(error)
  }

  flush (): void {
    const chunk = this.#take()
    if (chunk !== null && this.#response?.write(chunk) === false) this.#source.full()
  }

  #take (): Buffer | null {
    const pending = this.#pending
    if (pending.length === 0) return null
    this.#gathers = pending.length > 1
    const taken = joined(pending)
    pending.length = 0
    return taken
  }
}

// Not a closure: this runs for each read of each stream.
function flush (body: ReplyBody): void {
  body.flush()
}

function want (source: Source): void {
  source.wanted()
}

function ignore (): void {}
