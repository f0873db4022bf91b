import { AsyncResource } from 'node:async_hooks'
import { overloaded } from '../core/errors/overloaded.js'
import type { ShedReason } from '../core/recorder.js'
import { noteUnsent } from './broken-reply.js'
import { Exchange } from './exchange.js'
import type { ExchangeContext } from './exchange-context.js'
import type { DispatcherOptions } from './options.js'
import { PlacedHandler, type ReplyHandler } from './placed-handler.js'

/** `maxQueued`: of all upstreams together. */
type QueueOptions = Pick<DispatcherOptions, 'connections' | 'maxQueued' | 'queueMs'>

type Start = (handler: ReplyHandler) => void

/** A request that waits. */
interface Waiting {
  readonly context: ExchangeContext
  readonly handler: ReplyHandler
  readonly start: Start
  readonly origin: string
  readonly until: number
  /** Its own async context, because it goes on in an event of another request. */
  readonly scope: AsyncResource
}

/** The requests to one upstream. */
interface Line {
  running: number
  readonly waiting: Set<Waiting>
}

/**
 * Bounds who waits for a connection to an upstream. The transport would keep any number of requests, bodies included, for as
 * long as earlier replies take. Here each waits for a bounded time, and is refused when that is up.
 */
export class ConnectionQueue {
  readonly #options: QueueOptions
  readonly #lines = new Map<string, Line>()
  /** All waiting requests, in the order in which their time is up. */
  readonly #all = new Set<Waiting>()
  #timer: NodeJS.Timeout | null = null

  constructor (options: QueueOptions) {
    this.#options = options
  }

  /** Calls `start` as soon as the upstream has a place, or reports to the handler that the request is refused. */
  send (origin: string, context: ExchangeContext, handler: ReplyHandler, start: Start): void {
    // Its caller left while a hook of the host's waited. Cancelling it after it was written would cost the connection.
    if (context.llm.settled) return
    const line = this.#lineOf(origin)
    if (line.running < this.#options.connections) {
      line.running += 1
      handler.placed?.()
      start(new PlacedHandler(handler, () => this.#free(line)))
      return
    }
    if (this.#all.size >= this.#options.maxQueued) {
      refuse(context, handler, 'queue_full')
      return
    }
    const waiting = {
      context, handler, start, origin, until: performance.now() + this.#options.queueMs, scope: new AsyncResource('llm-gateway.queue'),
    }
    handler.leaveQueue = () => this.#drop(waiting)
    line.waiting.add(waiting)
    this.#all.add(waiting)
    this.#timer ??= setTimeout(() => this.#sweep(), this.#options.queueMs).unref()
  }

  /** A request is over, and the next one may be sent. */
  #free (line: Line): void {
    line.running -= 1
    const [next] = line.waiting
    if (next === undefined) return
    this.#drop(next)
    next.scope.runInAsyncScope(() => this.send(next.origin, next.context, next.handler, next.start))
  }

  #lineOf (origin: string): Line {
    const known = this.#lines.get(origin)
    if (known !== undefined) return known
    const line = { running: 0, waiting: new Set<Waiting>() }
    this.#lines.set(origin, line)
    return line
  }

  #drop (waiting: Waiting): void {
    this.#lineOf(waiting.origin).waiting.delete(waiting)
    this.#all.delete(waiting)
  }

  #sweep (): void {
    const now = performance.now()
    this.#timer = null
    for (const waiting of this.#all) {
      if (waiting.until > now) {
        this.#timer = setTimeout(() => this.#sweep(), Math.ceil(waiting.until - now)).unref()
        break
      }
      this.#drop(waiting)
      refuse(waiting.context, waiting.handler, 'queue_timeout')
    }
  }
}

function refuse ({ gateway, llm }: ExchangeContext, handler: ReplyHandler, reason: ShedReason): void {
  gateway.recorder.shed(reason)
  handler.onError(overloaded())
  // Of several attempts, an earlier one may have been sent.
  if (handler instanceof Exchange) noteUnsent(llm)
}
