import type { Agent, Dispatcher } from 'undici'
import { dispatchTraced } from '../core/telemetry/outgoing-trace.js'
import type { ModelCall } from '../core/model-call.js'
import type { Upstream } from '../core/types.js'
import { DrainBudget, type DrainOptions } from './drain.js'
import { Exchange } from './exchange.js'
import { kOwner, seal, type ExchangeDone, type ExchangeReply, type OwnedHeaders, type Owner } from './owner.js'
import { readdress } from './request-headers.js'
import { SlowReaders } from './slow-readers.js'
import { UpstreamAgent } from './undici.js'

export interface DispatcherOptions {
  /** Connections to one upstream; each carries one request at a time. Default 1,024. */
  connections: number
  /** From the request's last byte to the reply's headers. Default 900,000: a model may think long. */
  headersTimeoutMs: number
  /** Silence in the middle of a reply, and how long its caller may take nothing of it. Default 300,000. */
  idleTimeoutMs: number
  /** Default 10,000. */
  connectTimeoutMs: number
  drain: DrainOptions
  /** More options of undici's connector, such as `ca`. TLS verification is on unless `rejectUnauthorized: false`. */
  tls: Readonly<Record<string, unknown>>
}

/** A request of our own, ready to go. */
export interface OwnRequest {
  readonly owner: Owner
  readonly upstream: Upstream
  /** Names and values by turns. */
  readonly headers: string[]
  readonly body: Buffer | null
}

/** As reply-from calls back. */
type MountDone = (error: Error | null, reply?: ExchangeReply) => void

type RequestOptions = Dispatcher.DispatchOptions & { headers: OwnedHeaders }

/**
 * The transport to the upstreams: asked directly by our own routes, and below `@fastify/reply-from` by a host's mount, as
 * its `undici` option. For model requests it does what reply-from cannot: cancel the upstream when the caller leaves
 * before its headers, drain usage, meter without a second stream, and hand over small replies whole. Any other request of
 * the same mount goes through undici as it is.
 */
export class UpstreamDispatcher {
  readonly #agent: Agent
  readonly #drain: DrainBudget
  readonly #slow: SlowReaders
  #closed: Promise<void> | null = null
  // Read by reply-from under these names.
  readonly headersTimeout: number
  readonly bodyTimeout: number

  constructor ({ connections, headersTimeoutMs, idleTimeoutMs, connectTimeoutMs, drain, tls }: DispatcherOptions) {
    this.headersTimeout = headersTimeoutMs
    this.bodyTimeout = idleTimeoutMs
    this.#drain = new DrainBudget(drain)
    this.#slow = new SlowReaders(idleTimeoutMs)
    this.#agent = new UpstreamAgent({ connections, pipelining: 1, connect: { timeout: connectTimeoutMs, ...tls } })
  }

  request (options: RequestOptions, done: MountDone): void {
    const owner = options.headers[kOwner]
    if (owner === undefined) {
      this.#agent.request(options, done)
      return
    }
    const { llm, upstream } = owner
    if (upstream !== null) {
      Reflect.deleteProperty(options.headers, seal)
      options.origin = upstream.origin
      options.path = pathOf(llm, upstream)
      readdress(options.headers, llm, upstream)
    }
    this.#slow.follow(owner)
    dispatchTraced(this.#agent, options, llm, new Exchange(owner, this.#drain, done))
  }

  /** Sends a request of our own routes. */
  send ({ owner, upstream, headers, body }: OwnRequest, done: ExchangeDone): void {
    const { llm } = owner
    this.#slow.follow(owner)
    dispatchTraced(this.#agent, {
      origin: upstream.origin,
      path: pathOf(llm, upstream),
      method: llm.endpoint.method,
      headers,
      body,
      headersTimeout: this.headersTimeout,
      bodyTimeout: this.bodyTimeout,
    }, llm, new Exchange(owner, this.#drain, done))
  }

  /**
   * Called when the app closes, by whoever has it: what runs may end, as a reply whose caller has left is still read for its
   * usage. Resolves when all has ended.
   */
  async destroy (): Promise<void> {
    this.#slow.end()
    this.#closed ??= this.#agent.close()
    await this.#closed
  }
}

function pathOf (llm: ModelCall, upstream: Upstream): string {
  return upstream.basePath + llm.url.slice(llm.mountLength)
}
