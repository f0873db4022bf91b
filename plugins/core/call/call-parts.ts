/** The parts of a model call, each written by one plugin (docs/architecture.md). All fields exist from the start, for V8's sake. */
import type { Served } from '../money/cost.js'
import type { Span } from '../body/json-text.js'
import type { AttemptRecord, Group, Key, ModalityTokens, TokenUsage, UsageMissing } from '../types.js'

const none: readonly string[] = []

/** Who calls. Written by auth. */
export class CallAuth {
  key: Key | null = null
  group: Group | null = null
  /** The key was checked; a second pass through the router does not check it again. */
  passed = false
  /** The model was checked, too, and nothing on the host's request carries the caller's credential any more. */
  admitted = false
  // Private, so that no serializer and no inspection of this object can print a secret.
  #queryKeys: string[] | null
  #secret: string | null = null

  constructor (queryKeys: string[] | null) {
    this.#queryKeys = queryKeys
  }

  /** Credentials from the query; no URL holds them any more. */
  get queryKeys (): readonly string[] | null {
    return this.#queryKeys
  }

  /** Keeps the caller's own secret, for upstreams to which it is forwarded. */
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
  /** Parsed, for the plugins before `forward`; dropped when the request is sent. */
  json: unknown = undefined
  /** The bytes to send, if they differ from `bytes`. Set by the usage plugin. */
  outgoing: Buffer | null = null
  /** The longest body that is read. */
  maxBytes = 32 * 1024 * 1024
  /** Bytes that it takes of the memory shared by all large bodies. */
  heldBytes = 0
  /** Where the model's name is in a form; null for any other body. */
  modelAt: Span | null = null
  /** Where a large JSON body names the model, in the bytes to send; null where nobody has looked for it. */
  modelPlaces: readonly Span[] | null = null
  /** Its work may go on after the reply, or without its caller. Set by the limits plugin. */
  goesOn = false
  /** Further models that it names; the upstream may use any of them. */
  otherModels: readonly string[] = none
  /** Those of them that may replace the one asked for. */
  substitutes: readonly string[] = none
}

/** Where it goes, as the upstreams plugin decided. */
export class Routing {
  upstream: string | null = null
  /** The upstream's own name for the model, if it differs. */
  sentModel: string | null = null
  /** The caller's own secret is forwarded. */
  forwardsSecret = false
  /** Counts the requests that run at its upstream, if there was nothing to choose. */
  visited: { active: number } | null = null
  /** How long the upstream that made its reply is remembered, in milliseconds; 0 for not at all. */
  boundMs = 0
  /** Attempts that are over, in order; null if there was nothing to choose. */
  attempts: AttemptRecord[] | null = null
}

/** What came from the upstream. Written by `forward`, or by the usage plugin for replies of a host's mount. */
export class UpstreamReply {
  /** 0 before or without a reply. */
  status = 0
  requestId: string | null = null
  /** A tap of the usage plugin reads it. */
  tapped = false
  /** Bytes of its body; at the end those of the decompressed body. */
  bytes = 0
  /** Milliseconds of our own work on it: from the upstream's headers to ours, and from its last byte to ours. */
  workMs = 0
}

/** What the reply reports. Written by the usage plugin. */
export class ReplyUsage {
  tokens: TokenUsage | null = null
  /** Another view of `tokens`, by kind of content. */
  modalities: ModalityTokens[] | null = null
  /** How the reply says it was served, and what it counts besides its own tokens; null if it reports neither. */
  served: Served | null = null
  missing: UsageMissing | null = null
  /** The reply broke off before it had reported everything: `tokens` is what was seen, not what was used. */
  partial = false
  /** The reply's own totals disagree with its parts. */
  inconsistent = false
  /** The upstream reported a failure in a reply that began with success. */
  replyFailed = false
  responseModel: string | null = null
  responseId: string | null = null
  finishReason: string | null = null
}
