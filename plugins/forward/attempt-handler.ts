import { joined } from '../core/body/bytes.js'
import { overloaded } from '../core/errors/overloaded.js'
import { isEventStream } from '../core/reply/event-stream.js'
import type { Attempts, Call, Failure, KeptReply, StreamHead, Upstream } from '../core/upstream/upstream.js'
import type { GuardedExchange } from './guarded-exchange.js'
import { readHeaders, type Headers } from './raw-headers.js'
import { isUncompressed } from './reply-headers.js'
import type { ReplyHandler } from './placed-handler.js'
import { errors } from './undici.js'
import { saidBy } from './unpacked.js'

/** A reply that is judged by its body is passed on once it has more bytes, or takes longer, than this; a failed stream is cut then. */
const heldBytes = 256 * 1024
const heldMs = 1_000

// Initial values, shared by all and never written to.
const noRawHeaders: Buffer[] = []
const noHeaders: Headers = {}

/** What happens to the bytes of a reply: passed on, or held until its end, its first content, or the end of its failure. */
type Mode = 'waiting' | 'passed' | 'whole' | 'head' | 'failed_head'

/** Who made the attempt, and is told how it went. */
export interface AttemptListener {
  readonly exchange: GuardedExchange
  readonly attempts: Attempts
  /** Something of the request is about to be written. */
  sent: () => void
  /** The reply was passed on, and has ended. */
  completed: () => void
  /** The same, broken off. */
  broken: (error: Error) => void
  failed: (failure: Failure) => void
}

/**
 * One attempt, from its dispatch until its reply is passed on, kept, or given up. It has a timer of its own: the
 * transport's is accurate to about a second only, and does not run before there is a connection.
 */
export class AttemptHandler implements ReplyHandler {
  readonly #listener: AttemptListener
  readonly #upstream: Upstream
  #mode: Mode = 'waiting'
  #abort: ((error: Error) => void) | null = null
  #isPlaced = false
  #cancelled: Error | null = null
  #resume: () => void = nothingToResume
  #status = 0
  #rawHeaders: Buffer[] = noRawHeaders
  #headers: Headers = noHeaders
  #head: StreamHead | null = null
  #held: Buffer[] = []
  #bytes = 0
  #timer: NodeJS.Timeout | undefined
  leaveQueue: (() => void) | null = null

  constructor (listener: AttemptListener, { upstream, headersTimeoutMs }: Call) {
    this.#listener = listener
    this.#upstream = upstream
    if (headersTimeoutMs !== null) this.#timer = setTimeout(() => this.#timeIsUp(), headersTimeoutMs)
  }

  get isPassed (): boolean {
    return this.#mode === 'passed'
  }

  /** If it still waits for a connection, it is not sent. */
  cancel (error: Error): void {
    clearTimeout(this.#timer)
    this.#cancelled = error
    this.leaveQueue?.()
    this.#abort?.(error)
  }

  placed (): void {
    this.#isPlaced = true
  }

  onConnect (abort: (error?: Error) => void): void {
    this.#abort = abort
    if (this.#cancelled === null) this.#listener.sent()
    else abort(this.#cancelled)
  }

  onHeaders (status: number, raw: Buffer[], resume: () => void): boolean {
    if (status < 200) return true
    this.#status = status
    this.#rawHeaders = raw
    this.#resume = resume
    const look = this.#listener.attempts.look(status)
    if (look === 'pass') return this.#pass()
    this.#headers = readHeaders(raw)
    if (look === 'head' && !isReadableStream(this.#headers)) return this.#pass()
    this.#mode = look
    if (look === 'head') this.#head = this.#listener.attempts.openHead()
    else this.#hold(() => this.#passUnfinished())
    return true
  }

  onData (chunk: Buffer): boolean {
    if (this.#mode === 'passed') return this.#listener.exchange.onData(chunk)
    this.#held.push(chunk)
    this.#bytes += chunk.length
    if (this.#mode === 'whole' && this.#bytes > heldBytes) return this.#pass()
    if (this.#mode === 'failed_head' && this.#bytes > heldBytes) this.#cutFailed()
    if (this.#mode !== 'head') return true
    const verdict = this.#head?.push(chunk)
    if (verdict === 'pass') return this.#pass()
    if (verdict === 'failed') this.#holdFailure()
    return true
  }

  onComplete (): void {
    clearTimeout(this.#timer)
    if (this.#mode === 'head' && this.#head?.end() !== 'failed') this.#pass()
    if (this.#mode === 'passed') this.#listener.completed()
    else if (this.#cancelled === null) this.#listener.failed(this.#failureWith(null))
  }

  onError (error: Error): void {
    clearTimeout(this.#timer)
    if (this.#mode === 'passed') this.#listener.broken(error)
    else if (this.#cancelled === null) {
      this.#listener.failed(this.#mode === 'waiting' ? { kind: 'transport', error, sent: this.#abort !== null } : this.#failureWith(error))
    }
  }

  /** Holds a stream that reported a failure, to have the rest of it, which comes at once. */
  #holdFailure (): void {
    this.#mode = 'failed_head'
    this.#hold(() => this.#cutFailed())
  }

  #cutFailed (): void {
    this.#abort?.(new Error('a stream that failed did not end'))
  }

  #hold (end: () => void): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(end, heldMs)
  }

  /** No headers came, which is a failure; or headers without content, for which the caller itself waits on. */
  #timeIsUp (): void {
    if (this.#mode === 'head') {
      this.#pass()
      return
    }
    const error = this.#late()
    this.cancel(error)
    this.#listener.failed({ kind: 'transport', error, sent: this.#abort !== null })
  }

  /** Which time limit that was: without a place it passed in our own queue. */
  #late (): Error {
    if (!this.#isPlaced) return overloaded()
    return this.#abort === null ? new errors.ConnectTimeoutError() : new errors.HeadersTimeoutError()
  }

  /** The caller has waited for the rest of it, and does not wait again. */
  #passUnfinished (): void {
    this.#pass()
    this.#listener.exchange.holdNoLonger()
  }

  /** From here on the caller gets what comes, and no other attempt is made. */
  #pass (): boolean {
    clearTimeout(this.#timer)
    this.#mode = 'passed'
    const { exchange, attempts } = this.#listener
    attempts.passed(this.#headers)
    let goesOn = exchange.onHeaders(this.#status, this.#rawHeaders, this.#resume)
    for (const chunk of this.#held) goesOn = exchange.onData(chunk)
    this.#held = []
    return goesOn
  }

  /** What a reply said counts, even if it broke off after that. */
  #failureWith (error: Error | null): Failure {
    const body = joined(this.#held)
    const reply: KeptReply = {
      status: this.#status,
      headers: this.#headers,
      rawHeaders: this.#rawHeaders,
      body,
      // Some servers name a coding that their error does not have.
      text: saidBy(body, this.#headers) ?? body,
      error,
      upstream: this.#upstream,
    }
    return { kind: this.#mode === 'whole' ? 'reply' : 'head', reply }
  }
}

/** For a reply that is complete already. */
export function nothingToResume (): void {}

function isReadableStream (headers: Headers): boolean {
  return isEventStream(headers) && isUncompressed(headers)
}
