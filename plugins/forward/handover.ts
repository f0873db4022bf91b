import { performance } from 'node:perf_hooks'
import { joined } from '../core/body/bytes.js'
import { StreamCutError } from '../core/errors/reply-errors.js'
import { isEventStream } from '../core/reply/event-stream.js'
import type { ReplyTap } from '../core/types.js'
import { lastEvent, noteBroken, noteUndelivered } from './broken-reply.js'
import { EventBoundary } from './event-boundary.js'
import type { ExchangeContext, ExchangeDone, Transport } from './exchange-context.js'
import type { OpenStream } from './keep-alive-comments.js'
import type { Headers } from './raw-headers.js'
import { ReplyBody, type Source } from './reply-body.js'
import { flushHead, isUncompressed, namesType } from './reply-headers.js'

const keepAlive = Buffer.from(': keepalive\n\n')

// Not a closure over the exchange: one for every request doubled what each scavenge had to keep.
function deliver (handover: Handover): void {
  try {
    handover.deliver()
  } catch (error) {
    handover.giveUp(error)
  }
}

/** The caller's side of an exchange. Hands over the reply, whole if all of it came in one turn, else as a stream; or its failure. */
export abstract class Handover implements Source, OpenStream {
  protected readonly transport: Transport
  protected tap: ReplyTap | null = null
  /** The caller has left, or nobody reads the body any more. */
  protected hasLeft = false
  // Private, so that printing an exchange does not print its request.
  readonly #context: ExchangeContext
  readonly #done: ExchangeDone
  #headers: Headers = {}
  /** Pieces that came before it was handed over. */
  #early: Buffer[] = []
  #body: ReplyBody | null = null
  #boundary: EventBoundary | null = null
  /** Delivers the reply or the failure, once everything that came in this turn was read. */
  #wake: ((handover: Handover) => void) | null = null
  #error: Error | null = null
  /** Everything that the caller gets is there. */
  #isFinished = false

  constructor (context: ExchangeContext, transport: Transport, done: ExchangeDone) {
    this.#context = context
    this.transport = transport
    this.#done = done
    // Events of a connection run in the async context of the request that opened it. A promise callback runs in the context in which
    // the promise was made, so that a host's hooks do not find another request's there. It is also cheaper than a tick.
    new Promise<Handover>((resolve) => { this.#wake = resolve }).then(deliver)
  }

  protected get context (): ExchangeContext {
    return this.#context
  }

  // Called by a body, for the upstream (`Source`).
  abstract wanted (): void
  abstract full (): void
  abstract callerGone (): void

  /** What the caller gets for a piece, or with null at the end. `failed`: the reply has reported a failure. */
  abstract guarded (piece: Buffer | null, failed: boolean): Buffer

  /** After a clean end: false if it was cut all the same. */
  get whole (): boolean | Promise<boolean> {
    return this.tap === null || this.tap.whole
  }

  /** It was handed over before its end. */
  protected get isStreamed (): boolean {
    return this.#body !== null
  }

  /** A small reply arrives whole in the same turn as its headers; anything else is passed on without waiting for more. */
  protected begin (headers: Headers, tap: ReplyTap | null): void {
    this.#headers = headers
    this.tap = tap
    if (isEventStream(headers) && isUncompressed(headers)) this.#boundary = new EventBoundary()
    this.#wake?.(this)
  }

  /** Passes a piece on as it was read. False: the caller takes no more for now. */
  protected pass (read: Buffer): boolean {
    return this.#give(this.guarded(read, this.tap?.failed === true))
  }

  /** It ended cleanly, with what the tap had held back. */
  protected complete (rest: Buffer | null): void {
    if (rest !== null) this.pass(rest)
    this.#give(this.guarded(null, false))
    this.#conclude(this.whole)
  }

  /** There is no reply, or no more of it. */
  protected fail (error: Error): void {
    this.#error = error
    if (this.#body === null) this.#wake?.(this)
    else if (!this.hasLeft) this.#breakOff(error)
  }

  /** Once, unless the caller has left. */
  deliver (): void {
    if (this.hasLeft) return
    if (this.#error !== null) {
      this.#done(this.#error, undefined, this.#context)
      return
    }
    const { llm, streamOnly } = this.#context
    const body = this.#isFinished && !streamOnly && namesType(this.#headers) ? joined(this.#early) : this.#open()
    this.#early = []
    this.#done(null, { statusCode: llm.upstreamReply.status, headers: this.#headers, body }, this.#context)
    llm.upstreamReply.workMs += performance.now() - llm.times.headersAt
    this.transport.slow.follow(this.#context)
    if (this.#boundary !== null && llm.endpoint.family.skipsComments) this.transport.comments.follow(this)
  }

  /** For a stream that is followed for comments. */
  get isOver (): boolean {
    return this.hasLeft || this.#isFinished || this.#body === null || this.#body.destroyed
  }

  get bytes (): number {
    return this.#context.llm.upstreamReply.bytes
  }

  comment (): void {
    const { raw } = this.#context.reply
    if (this.#body?.readableLength === 0 && raw.writableLength === 0 && this.#boundary?.atBoundary === true) this.#body.pass(keepAlive)
  }

  giveUp (error: unknown): void {
    noteUndelivered(this.#context, error)
  }

  #open (): ReplyBody {
    const body = new ReplyBody(this)
    for (const chunk of this.#early) body.push(chunk)
    if (this.#isFinished) body.finish()
    this.#body = body
    this.#context.reply.raw.once('pipe', flushHead)
    return body
  }

  #give (chunk: Buffer): boolean {
    if (chunk.length === 0) return true
    this.#boundary?.push(chunk)
    if (this.#body !== null) return this.#body.pass(chunk)
    this.#early.push(chunk)
    return true
  }

  /** A stream is whole if its last event says so; one that merely ends was cut. Known later while compressed bytes are being read. */
  #conclude (whole: boolean | Promise<boolean>): void {
    if (whole === true) this.#finish()
    else if (whole === false) this.#breakOff(new StreamCutError())
    else whole.then((isWhole) => this.#conclude(isWhole))
  }

  /** Ends a stream that failed after it began: with an error event of the protocol if possible, else by cutting the connection. */
  #breakOff (error: Error): void {
    const failure = noteBroken(this.#context, error)
    this.#give(this.guarded(null, false))
    if (this.#boundary?.atBoundary === true) {
      this.#give(lastEvent(this.#context.llm, failure, this.tap))
      this.#finish()
    } else if (this.#body === null) this.#error = error
    else this.#body.cut(this.#context.reply, error)
  }

  #finish (): void {
    this.#isFinished = true
    this.#body?.finish()
  }
}
