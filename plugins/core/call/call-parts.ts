/** The parts of a model call: what one plugin writes, or one of a few in each other's place. All fields are there from the start. */
import type { Served } from '../money/cost.js'
import type { Span } from '../body/json-text.js'
import type { AttemptRecord, Group, Key, ModalityTokens, TokenUsage, UsageMissing } from '../types.js'

const none: readonly string[] = []

/** Who calls, as auth found. */
export class CallAuth {
  key: Key | null = null
  group: Group | null = null
  /** Auth let it pass; a second pass through the router does not ask again. */
  passed = false
  /** Auth is done with it: its model may be asked for, and nothing on the host's request carries the caller's credential any more. */
  admitted = false
  // Private, so that no serializer and no inspection of this object can print a secret.
  #queryKeys: string[] | null
  #secret: string | null = null

  constructor (queryKeys: string[] | null) {
    this.#queryKeys = queryKeys
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
}

/** The request's body: read by validation, or by whoever forwards it unchecked. */
export class RequestBody {
  /** As received; null for none or not read yet. */
  bytes: Buffer | null = null
  /** Parsed, for plugins before `forward`; dropped when the request is sent. */
  json: unknown = undefined
  /** The bytes to send where they differ from `bytes`. Set by the usage plugin. */
  outgoing: Buffer | null = null
  /** The largest that is read. */
  maxBytes = 32 * 1024 * 1024
  /** As they count for the memory of all large bodies. */
  heldBytes = 0
  /** Where the model's name stands in a form, null elsewhere. */
  modelAt: Span | null = null
  /** More models that it names, of which the upstream may use any. */
  otherModels: readonly string[] = none
  /** Those of them that may take the place of the one it asks for. */
  substitutes: readonly string[] = none
}

/** Where it goes, as the upstreams plugin decided. */
export class Routing {
  upstream: string | null = null
  /** The upstream's own name for the model, where it is another one. */
  sentModel: string | null = null
  /** The caller's own secret travels on. */
  forwardsSecret = false
  /** What counts the requests that run at its upstream, where there was nothing to choose. */
  visited: { active: number } | null = null
  /** How long what its reply makes is remembered with the upstream that made it, 0 for not. */
  boundMs = 0
  /** Attempts that are over, in their order; null where there was nothing to choose. */
  attempts: AttemptRecord[] | null = null
}

/** What came from the upstream: written by `forward`, or by the usage plugin in a host's mount. */
export class UpstreamReply {
  /** 0 before or without one. */
  status = 0
  requestId: string | null = null
  /** A tap of the usage plugin reads it. */
  tapped = false
  /** Bytes of its body; in the end as many as they are unpacked. */
  bytes = 0
  /** Milliseconds of our own work on it: from the upstream's headers to ours, and from its last byte to ours. */
  workMs = 0
}

/** What the usage plugin read in the reply. */
export class ReplyUsage {
  tokens: TokenUsage | null = null
  /** Another view of `tokens`, by kind of content. */
  modalities: ModalityTokens[] | null = null
  /** How the reply says it was served, and what it counts beside its own tokens; null where it tells of neither. */
  served: Served | null = null
  missing: UsageMissing | null = null
  /** The reply broke off before what it told was all: `tokens` is what was seen, not what was used. */
  partial = false
  /** The reply's own totals disagree with its parts. */
  inconsistent = false
  /** The upstream told a failure in a reply that began with success. */
  replyFailed = false
  responseModel: string | null = null
  responseId: string | null = null
  finishReason: string | null = null
}
