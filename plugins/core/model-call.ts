/** The state of one model request: what the plugins read and write in place of each other. Hosts read a view of it (`request.llm`). */
import { randomUUID } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import type { FastifyRequest } from 'fastify'
import type { Cost, Served } from './cost.js'
import type { Span } from './json-text.js'
import type { Resolved } from './url/resolve.js'
import type { Endpoint, ProtocolLabel } from '../protocols/index.js'
import type { ModelRequest } from './model-request.js'
import type {
  AbortSide, AttemptRecord, CallTrace, Group, Key, Labels, ModalityTokens, OpenTap, Outcome, RouteKind, Times, TokenUsage, UsageMissing,
} from './types.js'

const none: readonly string[] = []

const kCall = Symbol('fastify-llm-gateway.call')

interface Carrier extends Pick<FastifyRequest, 'raw'> {
  [kCall]?: ModelCall | null
}

/** One model request, from its first header to its settlement. */
export class ModelCall {
  /** Unique in the world: settlement, ledger and `x-request-id` use it. */
  readonly id: string = randomUUID()
  readonly startedAt: number = performance.now()
  readonly endpoint: Endpoint
  /** The canonical path and query, without any credential: what routing, policy, metrics and the upstream see. */
  readonly url: string
  /** Length of the mount prefix at the start of `url`, which does not go upstream. */
  readonly mountLength: number
  /** What was repaired in the path, null where nothing was. */
  readonly repair: string | null
  // Private, so that no serializer and no inspection of this object can print a secret.
  #queryKeys: string[] | null
  #secret: string | null = null
  #request: FastifyRequest | null = null
  #exchange: { readonly callerGone: () => void } | null = null

  /** What hosts see of it, made when one asks. */
  view: ModelRequest | null = null

  key: Key | null = null
  group: Group | null = null
  /** What the caller says of it in a header, where that is read. */
  callerLabels: Labels | null = null
  /** Auth let it pass; a second pass through the router does not ask again. */
  authenticated = false

  /** The bytes of the request body as received; null for none or not read yet. */
  body: Buffer | null = null
  /** The parsed body, for plugins before `forward`; dropped when the request is sent. */
  json: unknown = undefined
  /** The bytes to send where they differ from `body`. */
  outgoing: Buffer | null = null
  /** As the caller asked, from the path or the body; null where it named none. */
  model: string | null
  /** Where its name stands in a form, null elsewhere. */
  modelAt: Span | null = null
  /** More models that the body names, of which the upstream may use any. */
  otherModels: readonly string[] = none
  stream: boolean

  /** See `routeOf`. Null for not asked. */
  route: RouteKind | null = null

  /** The largest body that is read. */
  maxBodyBytes = 32 * 1024 * 1024
  /** Set by the tracing plugin where a span of ours is active. */
  trace: CallTrace | null = null

  /** Set by the usage plugin before the request is forwarded. */
  openTap: OpenTap | null = null
  tapped = false

  upstream: string | null = null
  /** The upstream's own name for the model, where it is another one. */
  sentModel: string | null = null
  /** What counts the requests that run at its upstream, where there was nothing to choose. */
  visited: { active: number } | null = null
  /** How long what its reply makes is remembered with the upstream that made it, 0 for not. */
  boundMs = 0
  /** The caller's own secret travelled on. */
  forwards = false
  /** Attempts that are over, in their order; null where there was nothing to choose. */
  attempts: AttemptRecord[] | null = null
  /** Status of the upstream's reply, 0 before or without one. */
  upstreamStatus = 0
  upstreamRequestId: string | null = null
  /** Model name in the upstream's reply. */
  responseModel: string | null = null
  responseId: string | null = null
  finishReason: string | null = null

  usage: TokenUsage | null = null
  /** How the reply says it was served, and what it counts beside its own tokens; null where it tells of neither. */
  served: Served | null = null
  modalities: ModalityTokens[] | null = null
  usageMissing: UsageMissing | null = null
  /** The reply broke off before what it told of its usage was all: `usage` is what was seen, not what was used. */
  usagePartial = false
  /** True where the reply's own totals disagree with its parts. */
  usageInconsistent = false

  /** The upstream told a failure in a reply that began with success. */
  replyFailed = false
  /** Code of our own refusal or failure, null where there was none. */
  errorCode: string | null = null
  outcome: Outcome | null = null
  /** What it cost, once it is over and there are prices; null where nothing was charged for, or nobody knows. */
  cost: Cost | null = null
  abortedBy: AbortSide | null = null

  /** Bytes of the reply's body that came from the upstream; in the end as many as they are unpacked. */
  replyBytes = 0

  readonly times: Times = { bodyStartedAt: 0, bodyAt: 0, sentAt: 0, headersAt: 0, firstChunkAt: 0, lastChunkAt: 0, endedAt: 0 }
  /** Milliseconds of our own work on the reply: from the upstream's headers to ours, and from its last byte to ours. */
  replyWorkMs = 0
  /** Status of the reply that the caller got, 0 where it left before one. */
  status = 0

  /** Its place in the list of those that run, -1 where it stands in none. */
  place = -1
  /** What the limits hold for it; theirs alone to read. */
  ticket: unknown = null

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
    this.#queryKeys = resolved.keys
  }

  /** Credentials that stood in the query; they are in no URL any more. */
  get queryKeys (): readonly string[] | null {
    return this.#queryKeys
  }

  /** Keeps the caller's own secret, for upstreams that it is to travel on to. */
  keepSecret (secret: string): void {
    this.#secret = secret
  }

  get secret (): string | null {
    return this.#secret
  }

  /**
   * The latest of the host's requests that stand for it: a second pass through the router makes another. Null before it is begun and once
   * it is settled.
   */
  get request (): FastifyRequest | null {
    return this.#request
  }

  /** The upstream exchange while one runs, to be told when the caller's socket is done with. */
  get exchange (): { readonly callerGone: () => void } | null {
    return this.#exchange
  }

  /** One that begins when the caller has left, after a hook that waited, must not be sent: nobody would count it any more. */
  set exchange (exchange: { readonly callerGone: () => void } | null) {
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
