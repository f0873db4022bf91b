/** The state of one model request: what the plugins read and write in place of each other. Hosts read a view of it (`request.llm`). */
import { randomUUID } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import type { FastifyRequest } from 'fastify'
import type { SettledCost } from '../money/cost.js'
import type { Resolved } from '../url/resolve.js'
import type { Endpoint, ProtocolLabel } from '../../protocols/index.js'
import type { ModelRequest } from './model-request.js'
import { CallAuth, ReplyUsage, RequestBody, Routing, UpstreamReply } from './call-parts.js'
import type { AbortSide, CallTrace, Labels, OpenTap, Outcome, RouteKind, Times } from '../types.js'

const kCall = Symbol('fastify-llm-gateway.call')

/** The upstream's side of a call while it runs. */
interface CallExchange {
  readonly callerGone: () => void
  /** The caller has its reply up to the event that nothing follows. */
  readonly told: boolean
}

interface Carrier extends Pick<FastifyRequest, 'raw'> {
  [kCall]?: ModelCall | null
}

/**
 * One model request, from its first header to its settlement. A part has what one plugin found; what stands beside the parts is core's, or
 * written by whichever plugin comes to it first.
 */
export class ModelCall {
  /** Unique in the world: settlement, ledger and `x-request-id` use it. */
  readonly id: string = randomUUID()
  readonly startedAt: number = performance.now()
  /** The same by the system's clock: `performance.timeOrigin` knows what that said when the process began, however it was set since. */
  readonly arrivedAt: number = Date.now()
  readonly endpoint: Endpoint
  /** The canonical path and query, without any credential: what routing, policy, metrics and the upstream see. */
  readonly url: string
  /** Length of the mount prefix at the start of `url`, which does not go upstream. */
  readonly mountLength: number
  /** What was repaired in the path, null where nothing was. */
  readonly repair: string | null
  // Private, so that nothing that prints this object prints the host's request.
  #request: FastifyRequest | null = null
  #exchange: CallExchange | null = null

  readonly auth: CallAuth
  readonly body = new RequestBody()
  readonly routing = new Routing()
  readonly upstreamReply = new UpstreamReply()
  readonly usage = new ReplyUsage()
  readonly times: Times = { bodyStartedAt: 0, bodyAt: 0, sentAt: 0, headersAt: 0, firstChunkAt: 0, lastChunkAt: 0, endedAt: 0 }

  /** As the caller asked, from the path or the body; null where it named none. */
  model: string | null
  stream: boolean

  /** Set by the labels plugin: what the caller says of it in a header, where that is read. */
  callerLabels: Labels | null = null
  /** Set by the tracing plugin where a span of ours is active. */
  trace: CallTrace | null = null
  /** Set by the usage plugin before the request is forwarded. */
  openTap: OpenTap | null = null
  /** What the limits hold for it; theirs alone to read. */
  ticket: unknown = null
  /** Its place in the list of those that run, -1 where it stands in none. */
  place = -1

  /** Code of our own refusal or failure, null where there was none. */
  errorCode: string | null = null
  outcome: Outcome | null = null
  abortedBy: AbortSide | null = null
  /** Status of the reply that the caller got, 0 where it left before one. */
  status = 0
  /** What it cost, once it is over and there are prices; null where nothing was charged for, or nobody knows. */
  cost: SettledCost | null = null

  /** What hosts see of it, made when one asks. */
  view: ModelRequest | null = null
  /** See `routeOf`. Null for not asked. */
  route: RouteKind | null = null
  /** Parties that must be done before settlement: the reply, and an upstream exchange while one runs. */
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
   * The latest of the host's requests that stand for it: a second pass through the router makes another. Null before it is begun and once
   * it is settled.
   */
  get request (): FastifyRequest | null {
    return this.#request
  }

  /** The upstream exchange while one runs, to be told when the caller's socket is done with. */
  get exchange (): CallExchange | null {
    return this.#exchange
  }

  /** One that begins when the caller has left, after a hook that waited, must not be sent: nobody would count it any more. */
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

/** For `decorateRequest`: each request has a place for its call from the start. */
export const callPlace = kCall

/** The call that a request of Fastify's stands for, null where it is none of ours or was not identified. */
export function modelCallOf (request: Carrier): ModelCall | null {
  // Undefined in a context that the host made before this package was registered.
  return request[kCall] ?? null
}

export function setModelCall (request: Carrier, call: ModelCall): void {
  request[kCall] = call
}
