import { performance } from 'node:perf_hooks'
import type { Dispatcher } from 'undici'
import { ReplyCodedError } from '../core/errors/reply-errors.js'
import { releaseHold } from '../core/call/request-life.js'
import type { Drain } from './drain.js'
import type { ExchangeContext, ExchangeDone, Transport } from './exchange-context.js'
import { Handover } from './handover.js'
import { isCoded } from './reply-headers.js'

/**
 * One request to an upstream, from dispatch to last byte. Each byte is passed on as it comes, and the tap sees it; backpressure reaches the
 * upstream; a caller that leaves cancels it, unless it is read on for its usage. Headers are bytes: as objects they cost 3 % of a request.
 */
export abstract class Exchange extends Handover implements Dispatcher.DispatchHandler {
  #cancel: ((error: Error) => void) | null = null
  #resume: (() => void) | null = null
  /** The upstream is held: the caller takes no more for now. */
  #paused = false
  #ended = false
  #drain: Drain | null = null
  leaveQueue: (() => void) | null = null

  constructor (context: ExchangeContext, transport: Transport, done: ExchangeDone) {
    super(context, transport, done)
    const { llm } = context
    llm.holds += 1
    llm.times.sentAt = performance.now()
    llm.exchange = this
  }

  onConnect (cancel: (error: Error) => void): void {
    this.#cancel = cancel
    if (this.hasLeft) this.#abort()
  }

  onHeaders (statusCode: number, raw: Buffer[], resume: () => void): boolean {
    if (statusCode < 200) return true
    const { llm } = this.context
    llm.times.headersAt = performance.now()
    const headers = this.transport.headers.read(raw)
    if (isCoded(headers)) {
      this.#cancel?.(new ReplyCodedError())
      return true
    }
    llm.upstreamReply.status = statusCode
    llm.upstreamReply.tapped = true
    this.#resume = resume
    this.begin(headers, llm.openTap === null ? null : llm.openTap(statusCode, headers))
    return true
  }

  onData (chunk: Buffer): boolean {
    const { llm } = this.context
    if (llm.times.firstChunkAt === 0) llm.times.firstChunkAt = this.#now()
    llm.upstreamReply.bytes += chunk.length
    const read = this.tap === null ? chunk : this.tap.push(chunk)
    if (this.hasLeft) this.#goOnDraining(chunk)
    else if (read !== null && !this.pass(read)) this.#paused = true
    return !this.#paused
  }

  onComplete (): void {
    const since = this.#now()
    this.#over(since)
    const rest = this.tap === null ? null : this.tap.end()
    if (!this.hasLeft) this.complete(rest)
    // A whole reply ends in the turn in which it is delivered, which tells its time.
    if (this.isStreamed) this.context.llm.upstreamReply.workMs += performance.now() - since
    this.#release()
  }

  onError (error: Error): void {
    // The text that could not be parsed: it may be the model's words, and errors are logged.
    Reflect.deleteProperty(error, 'data')
    this.#over(this.#now())
    this.tap?.abort(this.hasLeft ? 'client' : 'upstream')
    this.fail(error)
    this.#release()
  }

  /** All that comes before the reply is handed on comes in one turn with its headers. */
  #now (): number {
    return this.isStreamed || this.hasLeft ? performance.now() : this.context.llm.times.headersAt
  }

  /** Takes the end for the time of the last chunk: reading the clock for each chunk would cost a hundredth of a stream. */
  #over (now: number): void {
    this.#ended = true
    const { llm } = this.context
    if (llm.times.firstChunkAt > 0) llm.times.lastChunkAt = now
  }

  /** The caller has all that it waits for: many clients leave at the last event, before the reply ends. */
  get lastEventSeen (): boolean {
    return this.tap?.lastEventSeen === true
  }

  /** The caller has left, or the body is no longer read. */
  override callerGone (): void {
    if (this.hasLeft || this.#ended) return
    this.hasLeft = true
    if (this.tap !== null && !this.tap.complete) this.#drain = this.transport.drains.begin(() => this.#abort())
    if (this.#drain === null) this.#abort()
    else this.#goOn()
  }

  #goOnDraining (chunk: Buffer): void {
    if (this.#drain?.goesOn(chunk.length) !== true || this.tap?.complete === true) this.#abort()
  }

  #abort (): void {
    if (this.#cancel === null) {
      // It waits for a connection and will not be sent: what it holds can be released now.
      this.leaveQueue?.()
      this.context.llm.times.sentAt = 0
      this.#release()
    } else this.#cancel(new Error('the caller has left'))
  }

  /** The caller takes more. */
  override wanted (): void {
    if (!this.#ended) this.#goOn()
  }

  /** The caller takes no more for now. */
  override full (): void {
    if (!this.#ended && !this.hasLeft) this.#paused = true
  }

  #goOn (): void {
    if (!this.#paused) return
    this.#paused = false
    this.#resume?.()
  }

  #release (): void {
    const { gateway, llm, request } = this.context
    llm.exchange = null
    this.#drain?.end()
    releaseHold(gateway, request, llm)
  }
}
