import { AsyncResource } from 'node:async_hooks'
import { gatewayError, GatewayError } from '../core/errors/gateway-error.js'
import { ReplyCodedError } from '../core/errors/reply-errors.js'
import { releaseHold } from '../core/call/request-life.js'
import { writeLog } from '../core/write-log.js'
import type { Attempts, Call, Called, Failure, KeptReply } from '../core/upstream/upstream.js'
import { AttemptHandler, nothingToResume, type AttemptListener } from './attempt-handler.js'
import { noteUnsent } from './broken-reply.js'
import type { ExchangeContext } from './exchange-context.js'
import type { GuardedExchange } from './guarded-exchange.js'
import type { ReplyHandler } from './placed-handler.js'
import { isCoded } from './reply-headers.js'

/** Sends a call, and reports to the handler how it goes. */
type Dispatch = (call: Call, handler: ReplyHandler) => void

/**
 * Feeds one exchange, which knows nothing of the attempts, from the first upstream whose reply is to be passed on: one reply from its first
 * byte to its last, or one failure. Nothing more is sent once a byte was passed on, or the caller has left.
 */
export class Failover implements AttemptListener {
  readonly exchange: GuardedExchange
  readonly attempts: Attempts
  readonly #context: ExchangeContext
  readonly #dispatch: Dispatch
  // Events of a failure run in the async context of whichever request opened the connection.
  readonly #scope = new AsyncResource('llm-gateway.attempts')
  #current: AttemptHandler | null = null
  #isSent = false
  #hasLeft = false

  constructor (context: ExchangeContext, attempts: Attempts, exchange: GuardedExchange, dispatch: Dispatch) {
    this.#context = context
    this.attempts = attempts
    this.exchange = exchange
    this.#dispatch = dispatch
  }

  begin (): void {
    this.exchange.onConnect((error) => this.#leave(error))
    this.#next()
  }

  /** Something of the request is about to be written. */
  sent (): void {
    this.#isSent = true
  }

  /** Whether it is whole is known only after its end: a stream may end cleanly without its last event. The request is held until then. */
  completed (): void {
    let whole: boolean | Promise<boolean> = false
    this.#context.llm.holds += 1
    // If its end throws, the hold must still be released.
    try {
      this.exchange.onComplete()
      whole = this.exchange.whole
    } finally {
      if (typeof whole === 'boolean') this.#ended(whole)
      else whole.then((isWhole) => this.#ended(isWhole))
    }
  }

  #ended (isWhole: boolean): void {
    const { gateway, request, llm } = this.#context
    this.#over(isWhole ? 'complete' : 'broken')
    releaseHold(gateway, request, llm)
  }

  broken (error: Error): void {
    this.#over('broken')
    this.exchange.onError(error)
  }

  #over (end: 'complete' | 'broken'): void {
    const { abortedBy } = this.#context.llm
    // At the last event the caller has all that there is.
    if (this.#hasLeft) this.attempts.over(abortedBy === 'client' ? 'left' : 'complete')
    else this.attempts.over(end)
  }

  failed (failure: Failure): void {
    this.#scope.runInAsyncScope(() => {
      const wait = this.attempts.failed(failure)
      if (wait instanceof Promise) wait.then((ms) => this.#goOn(ms)).catch((error: unknown) => this.#fail(error))
      else this.#goOn(wait)
    })
  }

  #goOn (wait: number | null): void {
    if (this.#hasLeft) return
    if (wait === null) this.#conclude(this.attempts.last())
    else if (wait === 0) this.#next()
    else setTimeout(() => this.#next(), wait)
  }

  #next (): void {
    if (this.#hasLeft) return
    try {
      const called = this.attempts.next()
      if (called instanceof Promise) called.then((later) => this.#send(later)).catch((error: unknown) => this.#fail(error))
      else this.#send(called)
    } catch (error) {
      this.#fail(error)
    }
  }

  /** Handles what is thrown in a timer or a promise, which would otherwise end the process. */
  #fail (error: unknown): void {
    if (this.#hasLeft) return
    writeLog(this.#context.request.log, 'error', { err: error }, 'an upstream could not be asked')
    this.#conclude(gatewayError('internal_error'))
  }

  #send (called: Called): void {
    if (this.#hasLeft) return
    if (called instanceof GatewayError) {
      this.#conclude(this.attempts.last())
      return
    }
    this.#current = new AttemptHandler(this, called)
    this.#dispatch(called, this.#current)
  }

  /** No further attempt: the best of the earlier replies is passed on as if it came now. */
  #conclude (last: KeptReply | Error): void {
    this.attempts.over('complete')
    const { exchange } = this
    if (last instanceof Error) {
      exchange.onError(last)
      if (!this.#isSent) noteUnsent(this.#context.llm)
      return
    }
    // The exchange would cancel an attempt that is over, and end twice.
    if (isCoded(last.headers)) {
      exchange.onError(new ReplyCodedError())
      return
    }
    exchange.onHeaders(last.status, last.rawHeaders, nothingToResume)
    if (last.body.length > 0) exchange.onData(last.body)
    if (last.error === null) exchange.onComplete()
    else exchange.onError(last.error)
  }

  #leave (error: Error): void {
    const current = this.#current
    if (current?.isPassed === true) {
      // The exchange refuses a reply that it cannot pass on; the caller is still there.
      this.#hasLeft = !(error instanceof ReplyCodedError)
      current.cancel(error)
      return
    }
    this.#hasLeft = true
    this.attempts.over('left')
    // What was never sent is not counted as lost usage.
    if (!this.#isSent) this.#context.llm.times.sentAt = 0
    current?.cancel(error)
    this.exchange.onError(error)
  }
}
