/** The state of one model request, through which the plugins meet. Hosts see a view of it (`request.llm`). */
import { randomUUID } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import type { FastifyRequest } from 'fastify'
import type { SettledCost } from '../money/cost.js'
import type { Resolved } from '../url/resolve.js'
import type { Endpoint, ProtocolLabel } from '../../protocols/index.js'
import type { ModelRequest } from './model-request.js'
import { CallAuth, ReplyUsage, RequestBody, Routing, UpstreamReply } from './call-parts.js'
import type { AbortSide, CallTrace, Labels, OpenTap, Outcome, RouteKind, Times } from '../types.js'

/** For `decorateRequest`: each request has a field for its call from the start. */
export const kCall = Symbol('fastify-llm-gateway.call')

/** The upstream's side of a call while it runs. */
interface CallExchange {
  readonly callerGone: () => void
  /** The caller has been sent the last event of its stream. */
  readonly lastEventSeen: boolean
}

interface Carrier extends Pick<FastifyRequest, 'raw'> {
  [kCall]?: ModelCall | null
}

/**
 * One model request, from its first header to its settlement. Each part is one plugin's; the fields beside the parts are core's, or
 * written by whichever plugin comes first.
 */
export class ModelCall {
  /** A UUID, for settlement, ledger and `x-request-id`. */
  readonly id: string = randomUUID()
  readonly startedAt: number = performance.now()
  /**
   * The same by the system's clock, in milliseconds since the epoch. It is read, not derived from `performance.timeOrigin`, which does
   * not follow when the clock is set. A request that tells what an earlier one used takes over that one's time, whose prices apply.
   */
  arrivedAt: number = Date.now()
  readonly endpoint: Endpoint
  /** The canonical path and query, without any credential: what routing, policy, metrics and the upstream see. */
  readonly url: string
  /** Length of the mount prefix at the start of `url`, which does not go upstream. */
  readonly mountLength: number
  /** The kind of repair of the path, null for none. */
  readonly repair: string | null
  // Private, so that printing this object does not print the host's request.
  #request: FastifyRequest | null = null
  #exchange: CallExchange | null = null

  readonly auth: CallAuth
  readonly body = new RequestBody()
  readonly routing = new Routing()
  readonly upstreamReply = new UpstreamReply()
  readonly usage = new ReplyUsage()
  readonly times: Times = { bodyStartedAt: 0, bodyAt: 0, sentAt: 0, headersAt: 0, firstChunkAt: 0, lastChunkAt: 0, endedAt: 0 }

  /** As the caller named it, in the path or the body; null if it named none. */
  model: string | null
  stream: boolean

  /** Labels from the caller's header, if that is read. Set by the labels plugin. */
  callerLabels: Labels | null = null
  /** Set by the tracing plugin if a span of ours is active. */
  trace: CallTrace | null = null
  /** Set by the usage plugin before the request is forwarded. */
  openTap: OpenTap | null = null
  /** The ticket of the limits plugin, which alone reads it. */
  ticket: unknown = null
  /** Its index in the list of running requests, -1 for none. */
  place = -1

  /** Code of our own refusal or failure, null for none. */
  errorCode: string | null = null
  outcome: Outcome | null = null
  abortedBy: AbortSide | null = null
  /** Status of the reply that the caller got, 0 if it left before one. */
  status = 0
  /** What it cost, once it is over; null without prices, or if nothing was charged. */
  cost: SettledCost | null = null

  /** What hosts see of it; made on first use. */
  view: ModelRequest | null = null
  /** See `routeOf`. Null for not determined yet. */
  route: RouteKind | null = null
  /** How many parties must finish before settlement: the reply, and an upstream exchange while one runs. */
  holds = 1
  settled = false

  constructor (resolved: Resolved) {
    this.endpoint = resolved.endpoint
    this.url = resolved.url
    this.mountLength = resolved.mountLength
    this.repair = resolved.repair
    this.model = resolved.model
    this.stream = resolved.endpoint.streams === 'path'
    this.auth = new CallAuth(resolved.keys)
  }

  /**
   * The newest of Fastify's requests for it: a second pass through the router makes another. Null before it is begun and after it is
   * settled.
   */
  get request (): FastifyRequest | null {
    return this.#request
  }

  /** The running upstream exchange, which is told when the caller is gone. */
  get exchange (): CallExchange | null {
    return this.#exchange
  }

  /** An exchange that begins after settlement (its caller left while a hook waited) must not be sent: nobody would count it. */
  set exchange (exchange: CallExchange | null) {
    this.#exchange = exchange
    if (this.settled) exchange?.callerGone()
  }

  carryOn (request: FastifyRequest | null): void {
    this.#request = request
    this.route = null
  }

  get protocol (): ProtocolLabel {
    return this.endpoint.protocol
  }
}

/** The call of a Fastify request; null if it is none of ours, or was not identified. */
export function modelCallOf (request: Carrier): ModelCall | null {
  // Undefined in a context that the host made before this package was registered.
  return request[kCall] ?? null
}

export function setModelCall (request: Carrier, call: ModelCall): void {
  request[kCall] = call
}
