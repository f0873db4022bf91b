import { performance } from 'node:perf_hooks'
import type { Dispatcher } from 'undici'
import { ReplyCodedError, StreamCutError } from '../core/errors/reply-errors.js'
import { isEventStream } from '../core/event-stream.js'
import { releaseHold } from '../core/request-life.js'
import type { ReplyTap } from '../core/types.js'
import { lastEvent, noteBroken, noteUndelivered } from './broken-reply.js'
import type { Drain } from './drain.js'
import { EventBoundary } from './event-boundary.js'
import type { ExchangeDone, ExchangeContext, Transport } from './exchange-context.js'
import { joined, ReplyBody, type Source } from './reply-body.js'
import type { Headers } from './raw-headers.js'
import { flushHead, isCoded, isPlain, namesType } from './reply-headers.js'

// No closure captures an exchange on the way of every request: that doubled what each scavenge had to keep.
function deliver (exchange: Exchange): void {
  try {
    exchange.deliver()
  } catch (error) {
    exchange.giveUp(error)
  }
}

/**
 * One request to an upstream, from dispatch to its last byte. Each byte goes on as it comes; the tap sees it pass; backpressure holds the
 * upstream; a caller that leaves cancels it, unless its usage is drained. Headers as bytes: undici's objects of them cost 3 % of a request.
 */
export abstract class Exchange implements Dispatcher.DispatchHandler, Source {
  readonly #context: ExchangeContext
  readonly #transport: Transport
  readonly #done: ExchangeDone
  #cancel: ((error: Error) => void) | null = null
  #resume: (() => void) | null = null
  /** The upstream is held: the caller takes no more for now. */
  #paused = false
  #tap: ReplyTap | null = null
  #headers: Headers = {}
  #early: Buffer[] = []
  #body: ReplyBody | null = null
  #boundary: EventBoundary | null = null
  /** Has the reply delivered, or the failure, once all that came in this turn was read. */
  #wake: ((exchange: Exchange) => void) | null = null
  #error: Error | null = null
  #delivered = false
  #ended = false
  /** It has ended, and may have ended too early. */
  #undecided = false
  /** The caller has left. */
  #left = false
  #drain: Drain | null = null
  leaveQueue: (() => void) | null = null

  constructor (context: ExchangeContext, transport: Transport, done: ExchangeDone) {
    this.#context = context
    this.#transport = transport
    this.#done = done
    const { llm } = context
    llm.holds += 1
    llm.times.sentAt = performance.now()
    llm.exchange = this
    // The events of a connection run in the asynchronous context of the request that opened it. What follows a promise
    // runs in the one that it was made in: a host's hooks must not find another request's there. It is also cheaper than a tick.
    new Promise<Exchange>((resolve) => { this.#wake = resolve }).then(deliver)
  }

  onConnect (cancel: (error: Error) => void): void {
    this.#cancel = cancel
    if (this.#left) this.#abort()
  }

  onHeaders (statusCode: number, raw: Buffer[], resume: () => void): boolean {
    if (statusCode < 200) return true
    const { llm } = this.#context
    llm.times.headersAt = performance.now()
    const headers = this.#headers = this.#transport.headers.read(raw)
    if (isCoded(headers)) {
      this.#cancel?.(new ReplyCodedError())
      return true
    }
    llm.upstreamReply.status = statusCode
    llm.upstreamReply.tapped = true
    this.#resume = resume
    this.#tap = llm.openTap === null ? null : llm.openTap(statusCode, headers)
    if (isEventStream(headers) && isPlain(headers)) this.#boundary = new EventBoundary()
    // A small reply arrives whole in the same turn as its headers; anything else is passed on without waiting for more.
    this.#wake?.(this)
    return true
  }

  onData (chunk: Buffer): boolean {
    const { llm } = this.#context
    if (llm.times.firstChunkAt === 0) llm.times.firstChunkAt = this.#now()
    llm.upstreamReply.bytes += chunk.length
    const read = this.#tap === null ? chunk : this.#tap.push(chunk)
    if (this.#left) this.#goOnDraining(chunk)
    else if (read !== null && !this.#pass(this.guarded(read, this.#tap?.failed === true))) this.#paused = true
    return !this.#paused
  }

  /** What the caller gets of a piece now, or at the end of all. `failed`: the reply has told of a failure. */
  abstract guarded (piece: Buffer | null, failed: boolean): Buffer

  onComplete (): void {
    const since = this.#now()
    this.#over(since)
    const rest = this.#tap === null ? null : this.#tap.end()
    if (!this.#left) {
      if (rest !== null) this.#pass(this.guarded(rest, this.#tap?.failed === true))
      this.#pass(this.guarded(null, false))
      this.#conclude(this.whole)
    }
    // A whole reply ends in the turn in which it is delivered, which tells its time.
    if (this.#body !== null) this.#context.llm.upstreamReply.workMs += performance.now() - since
    this.#finish()
  }

  /** After its clean end: false where it was cut all the same. */
  get whole (): boolean | Promise<boolean> {
    return this.#tap === null || this.#tap.whole
  }

  onError (error: Error): void {
    // What could not be parsed, as text: it may be the model's words, and whoever handles the error logs it.
    Reflect.deleteProperty(error, 'data')
    this.#over(this.#now())
    this.#tap?.abort(this.#left ? 'client' : 'upstream')
    this.#error = error
    if (!this.#delivered) this.#wake?.(this)
    else if (!this.#left) this.#breakOff(error)
    this.#finish()
  }

  /** All that comes before the reply is handed on comes in one turn with its headers. */
  #now (): number {
    return this.#delivered || this.#left ? performance.now() : this.#context.llm.times.headersAt
  }

  /** The clock is read here and not for each chunk (a hundredth of a stream): an upstream ends its reply with its last chunk. */
  #over (now: number): void {
    this.#ended = true
    const { llm } = this.#context
    if (llm.times.firstChunkAt > 0) llm.times.lastChunkAt = now
  }

  /** The caller has left, or nobody reads the body any more. */
  callerGone (): void {
    if (this.#left || this.#ended) return
    this.#left = true
    if (this.#tap !== null && !this.#tap.complete) this.#drain = this.#transport.drains.begin(() => this.#abort())
    if (this.#drain === null) this.#abort()
    else this.#goOn()
  }

  #goOnDraining (chunk: Buffer): void {
    if (this.#drain?.goesOn(chunk.length) !== true || this.#tap?.complete === true) this.#abort()
  }

  #abort (): void {
    if (this.#cancel === null) {
      // It waits for a connection, and is not sent when it gets one: what it holds is free now.
      this.leaveQueue?.()
      this.#context.llm.times.sentAt = 0
      this.#finish()
    } else this.#cancel(new Error('the caller has left'))
  }

  /** False: the caller takes no more for now. */
  #pass (chunk: Buffer): boolean {
    if (chunk.length === 0) return true
    this.#boundary?.push(chunk)
    if (this.#body !== null) return this.#body.pass(chunk)
    this.#early.push(chunk)
    return true
  }

  /** Gives the caller the reply, whole where it has ended already, else as a stream; or its failure. Once, unless the caller has left. */
  deliver (): void {
    if (this.#left) return
    this.#delivered = true
    if (this.#error !== null) {
      this.#done(this.#error, undefined, this.#context)
      return
    }
    const whole = this.#ended && !this.#undecided && !this.#context.streamOnly && namesType(this.#headers)
    const body = whole ? joined(this.#early) : this.#open()
    this.#early = []
    this.#done(null, { statusCode: this.#context.llm.upstreamReply.status, headers: this.#headers, body }, this.#context)
    const { llm } = this.#context
    llm.upstreamReply.workMs += performance.now() - llm.times.headersAt
    this.#transport.slow.follow(this.#context)
  }

  giveUp (error: unknown): void {
    noteUndelivered(this.#context, error)
  }

  #open (): ReplyBody {
    const body = new ReplyBody(this)
    for (const chunk of this.#early) body.push(chunk)
    if (this.#ended && !this.#undecided) body.finish()
    this.#body = body
    this.#context.reply.raw.once('pipe', flushHead)
    return body
  }

  /** The caller takes more. */
  wanted (): void {
    if (!this.#ended) this.#goOn()
  }

  /** The caller takes no more for now. */
  full (): void {
    if (!this.#ended && !this.#left) this.#paused = true
  }

  #goOn (): void {
    if (!this.#paused) return
    this.#paused = false
    this.#resume?.()
  }

  /** A stream is whole where its last event says so; one that merely ends was cut. Told later while packed bytes are being read. */
  #conclude (whole: boolean | Promise<boolean>): void {
    this.#undecided = typeof whole !== 'boolean'
    if (whole === true) this.#body?.finish()
    else if (whole === false) this.#breakOff(new StreamCutError())
    else whole.then((isWhole) => this.#conclude(isWhole))
  }

  /** A stream that failed after it began: told as an event of the protocol where that is possible, else by cutting the connection. */
  #breakOff (error: Error): void {
    const failure = noteBroken(this.#context, error)
    this.#pass(this.guarded(null, false))
    if (this.#boundary?.atBoundary === true) {
      this.#pass(lastEvent(this.#context.llm, failure, this.#tap))
      this.#body?.finish()
    } else if (this.#body === null) this.#error = error
    else this.#body.cut(this.#context.reply, error)
  }

  #finish (): void {
    const { gateway, llm, request } = this.#context
    llm.exchange = null
    this.#drain?.end()
    releaseHold(gateway, request, llm)
  }
}
