import { Readable } from 'node:stream'
import type { Agent, Dispatcher } from 'undici'
import { dispatchTraced } from '../core/telemetry/outgoing-trace.js'
import { GatewayError } from '../core/errors/gateway-error.js'
import type { Call, Destination } from '../core/upstream/upstream.js'
import { noteUnsent } from './broken-reply.js'
import { ConnectionQueue } from './connection-queue.js'
import { DrainBudget } from './drain.js'
import { Failover } from './failover.js'
import {
  kContext, type ExchangeContext, type ExchangeDone, type ExchangeReply, type MarkedHeaders, type RelayContext, type Transport,
} from './exchange-context.js'
import { inPieces } from './body-pieces.js'
import { GuardedExchange } from './guarded-exchange.js'
import { KeepAliveComments } from './keep-alive-comments.js'
import type { DispatcherOptions } from './options.js'
import type { ReplyHandler } from './placed-handler.js'
import { HeaderReader } from './raw-headers.js'
import { endPausedReplies } from './paused-parser.js'
import { ownRequestHeaders, readdress } from './request-headers.js'
import { SlowReaders } from './slow-readers.js'
import { UpstreamAgent } from './undici.js'

/** The callback of reply-from. */
type MountDone = (error: Error | null, reply?: ExchangeReply) => void

type RequestOptions = Dispatcher.DispatchOptions & { headers: MarkedHeaders }

/**
 * The transport to the upstreams: called directly by our own routes, and by `@fastify/reply-from` on a host's mount, as
 * its `undici` option. For model requests it does what reply-from cannot: cancel the upstream when the caller leaves
 * before the headers, read on for usage, meter without a second stream, and hand over small replies whole. Other requests that the mount
 * may send go through undici unchanged, and a request without a decision is not sent.
 */
export class UpstreamDispatcher {
  readonly #agent: Agent
  /** For requests that we leave alone. They do not wait in our queue, so a model request must not wait for their connections. */
  readonly #others: Agent
  readonly #transport: Transport
  readonly #queue: ConnectionQueue
  /** Per request: undici's connector takes the name in its address first. */
  readonly #tlsName: object
  #closed: Promise<unknown> | null = null
  // Read by reply-from under these names.
  readonly headersTimeout: number
  readonly bodyTimeout: number

  constructor (options: DispatcherOptions) {
    const { connections, headersTimeoutMs, idleTimeoutMs, connectTimeoutMs, keepAliveCommentMs, drain, tls } = options
    this.headersTimeout = headersTimeoutMs
    this.bodyTimeout = idleTimeoutMs
    this.#transport = {
      drains: new DrainBudget(drain),
      headers: new HeaderReader(),
      slow: new SlowReaders(idleTimeoutMs),
      comments: new KeepAliveComments(keepAliveCommentMs),
    }
    this.#queue = new ConnectionQueue(options)
    this.#tlsName = { servername: tls['servername'] }
    const agentOptions = { connections, pipelining: 1, connect: { timeout: connectTimeoutMs, ...tls } }
    this.#agent = new UpstreamAgent(agentOptions)
    this.#others = new UpstreamAgent(agentOptions)
    for (const agent of [this.#agent, this.#others]) agent.on('connect', (_origin, targets) => endPausedReplies(targets.at(-1)))
  }

  request (options: RequestOptions, done: MountDone): void {
    const context = options.headers[kContext]
    if (context === undefined) {
      done(new TypeError('nothing was sent: a mount that spreads proxyOptions() must send by the handler that they bring'))
      return
    }
    if (context === null) {
      this.#others.request(Object.assign(options, this.#tlsName), done)
      return
    }
    const { destination } = context
    if (destination === null) {
      this.#queued(options, context, new GuardedExchange(context, this.#transport, done, options))
      return
    }
    this.#dispatch(context, destination, done, options.body instanceof Readable, (call) => mounted(options, call))
  }

  /** Sends a request of our own routes. */
  send (context: RelayContext, done: ExchangeDone): void {
    const { llm, request, destination } = context
    this.#dispatch(context, destination, done, false, (call) => ({
      origin: call.upstream.origin,
      path: call.path,
      method: llm.endpoint.method,
      headers: ownRequestHeaders(request.raw.headers, llm, call),
      body: call.body,
      headersTimeout: this.headersTimeout,
      bodyTimeout: this.bodyTimeout,
    }))
  }

  /** `once`: what is sent cannot be sent a second time. */
  #dispatch (
    context: ExchangeContext, destination: Destination, done: ExchangeDone, once: boolean,
    optionsOf: (call: Call) => Dispatcher.DispatchOptions
  ): void {
    const { llm, request } = context
    const exchange = new GuardedExchange(context, this.#transport, done)
    const called = destination.call?.(llm)
    if (called instanceof GatewayError) {
      exchange.onError(called)
      noteUnsent(llm)
    } else if (called !== undefined) {
      this.#queued(optionsOf(called), context, exchange)
    } else {
      new Failover(context, destination.open(llm, request.raw.headers, once), exchange, (call, handler) => {
        exchange.sends(call)
        this.#queued(optionsOf(call), context, handler)
      }).begin()
    }
  }

  #queued (options: Dispatcher.DispatchOptions, context: ExchangeContext, handler: ReplyHandler): void {
    this.#queue.send(String(options.origin), context, handler, (placed) => {
      dispatchTraced(this.#agent, Object.assign(inPieces(options), this.#tlsName), context.llm, placed)
    })
  }

  /**
   * Called when the app closes. Running requests may end, because a reply whose caller has left is still read for its
   * usage; of what was left alone, whose callers are gone, nothing is read. Resolves when all have ended.
   */
  async destroy (): Promise<void> {
    this.#transport.slow.end()
    this.#transport.comments.end()
    this.#closed ??= Promise.all([this.#agent.close(), this.#others.destroy()])
    await this.#closed
  }
}

/** The request of a mount as the upstream gets it. A body that no plugin read is streamed. */
function mounted (options: RequestOptions, call: Call): Dispatcher.DispatchOptions {
  const { upstream: { origin }, path } = call
  const { body = null } = options
  return Object.assign({}, options, { origin, path, headers: readdress(options.headers, call), body: call.body ?? body })
}
