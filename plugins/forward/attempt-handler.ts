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

/** A reply that is to be judged by its body is passed on where it has more than this, or takes longer; a stream that failed is cut. */
const heldBytes = 256 * 1024
const heldMs = 1_000

// Before there are any: shared by all, and never written to.
const noRawHeaders: Buffer[] = []
const noHeaders: Headers = {}

/** What is done with the bytes of a reply: passed on, held to its end, held to its first content, or held to the end of its failure. */
type Mode = 'waiting' | 'passed' | 'whole' | 'head' | 'failed_head'

/** Whose attempt it is. */
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
 * One attempt: from its dispatch to where its reply is passed on, or kept, or given up. Its time has a clock of its own: the
 * transport's is coarse, to about a second, and does not run before there is a connection.
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

  /** One that waits for a connection is not sent when it gets one. */
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
    const told = this.#head?.push(chunk)
    if (told === 'pass') return this.#pass()
    if (told === 'failed') this.#holdFailure()
    return true
  }

  onComplete (): void {
    clearTimeout(this.#timer)
    if (this.#mode === 'head') this.#pass()
    if (this.#mode === 'passed') this.#listener.completed()
    else if (this.#cancelled === null) this.#listener.failed(this.#told(null))
  }

  onError (error: Error): void {
    clearTimeout(this.#timer)
    if (this.#mode === 'passed') this.#listener.broken(error)
    else if (this.#cancelled === null) {
      this.#listener.failed(this.#mode === 'waiting' ? { kind: 'transport', error, sent: this.#abort !== null } : this.#told(error))
    }
  }

  /** The rest of a stream that told its failure comes with it or at once. */
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

  /** No headers came, which is a failure; or nothing of content behind them, which is for the caller to wait for. */
  #timeIsUp (): void {
    if (this.#mode === 'head') {
      this.#pass()
      return
    }
    const error = this.#late()
    this.cancel(error)
    this.#listener.failed({ kind: 'transport', error, sent: this.#abort !== null })
  }

  /** Before it had a place the time went by in a queue of ours. */
  #late (): Error {
    if (!this.#isPlaced) return overloaded()
    return this.#abort === null ? new errors.ConnectTimeoutError() : new errors.HeadersTimeoutError()
  }

  /** Its caller has waited for the rest of it, and does not wait for that again. */
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

  /** What a reply has said counts, also where it broke off after that. */
  #told (error: Error | null): Failure {
    const body = joined(this.#held)
    const reply: KeptReply = {
      status: this.#status,
      headers: this.#headers,
      rawHeaders: this.#rawHeaders,
      body,
      // Some name a coding that their error does not have.
      text: saidBy(body, this.#headers) ?? body,
      error,
      upstream: this.#upstream,
    }
    return { kind: this.#mode === 'whole' ? 'reply' : 'head', reply }
  }
}

/** Of a reply that is all there. */
export function nothingToResume (): void {}

function isReadableStream (headers: Headers): boolean {
  return isEventStream(headers) && isUncompressed(headers)
}
