/**
 * The vocabulary of the protocol table. Everything in this folder is data and tiny pure functions: the request pipeline reads it and never
 * branches on a provider's name.
 */
import type { HeldConversation } from './conversation.js'
import type { Simulation } from './simulate-text.js'
import type { TextRules } from './text-rules.js'
import type { UsageRules } from './usage-rules.js'

/** The conventions of one provider kind: version prefix, credential sources, error envelope. */
export type FamilyName = 'openai' | 'anthropic' | 'gemini'

/** Sources of credentials that callers may use only if an operator allows them. */
export type OptionalSource = 'api-key' | 'gemini-bearer'

export interface CredentialSource {
  readonly in: 'header' | 'query'
  readonly name: string
  /** An authentication scheme in front of the secret, compared in any case (RFC 9110 11.1). */
  readonly scheme?: 'bearer'
  /** Not read unless the operator lists this name in the auth option `optionalSources`. */
  readonly optional?: OptionalSource
}

/** The kind of an error; each family has its own name for it. */
export type ErrorKind =
  | 'invalid_request' | 'authentication' | 'permission' | 'billing' | 'not_found' | 'too_large' | 'rate_limit'
  | 'internal' | 'overloaded' | 'timeout'

/** A limit of ours that a request has reached, for the headers of the refusal. */
interface LimitFacts {
  readonly limit: 'requests' | 'tokens'
  /** What it allows in a minute. */
  readonly allowed: number
  readonly free: number
  /** Milliseconds after which a retry makes sense. */
  readonly resetMs: number
}

/** Where a request limits its output: paths of fields, of which the first that exists counts. */
export interface OutputFields {
  /** Maximum number of tokens of one answer. */
  readonly max: ReadonlyArray<readonly string[]>
  /** Number of answers. */
  readonly choices: ReadonlyArray<readonly string[]>
  /** The field by which work goes on after the reply, which then reports no usage: an endpoint with `replays` may. */
  readonly goesOn?: readonly string[]
  /** Tools charged by the piece that it may let the provider use. */
  readonly tools?: readonly PaidTool[]
  /** Where its conversation may have further entries of that list. */
  readonly toolsWithin?: ReadonlyArray<readonly string[]>
}

/** A tool of the provider, as an entry of the body's list `tools`. */
export interface PaidTool {
  readonly unit: 'search' | 'file_search' | 'container'
  /** How the `type` of the entry begins, or the fields that it has instead. */
  readonly names: readonly string[]
  /** Field of the entry, or of the body for all of them, that limits the number of uses; null if there is none. */
  readonly most: string | null
  /** Fields of the body that ask for it outside of the list. */
  readonly fields?: readonly string[]
  /** Paths of its size in the entry (`4g`): it counts as often. */
  readonly sizes?: ReadonlyArray<readonly string[]>
}

/** Everything that an envelope may say of one failure. Never contains an address, a URL with a query, or a key. */
export interface ErrorFacts {
  readonly status: number
  readonly kind: ErrorKind
  readonly code: string
  readonly message: string
  /** Dotted path of the failing field of the request, if there is one. */
  readonly param: string | null
  readonly requestId: string
  /** Milliseconds after which a retry makes sense, if known. */
  readonly retryAfterMs?: number | null
}

/** What a stream stated about itself before it broke off; null for what it did not state. */
export interface StreamFacts {
  readonly id: string | null
  readonly model: string | null
  /** Seconds since the epoch. */
  readonly createdAt: number | null
  /** Number of its last event. */
  readonly sequence: number | null
}

/** Tells the caller of a stream that it failed after it began. Returns whole events. */
export type TellStreamError = (facts: ErrorFacts, stream: StreamFacts) => string

export interface Family {
  readonly name: FamilyName
  /** `gen_ai.provider.name` of OpenTelemetry's GenAI conventions: whose API it is, whoever serves it. */
  readonly provider: string
  /** The one version segment in canonical URLs of this family. */
  readonly prefix: 'v1' | 'v1beta'
  /** Where the caller's credential may be; the first match wins. */
  readonly credentials: readonly [CredentialSource, ...CredentialSource[]]
  /**
   * Query parameters that may carry a credential at its upstreams, whether or not callers may use them here: lower case, with `_` for any
   * separator. None of them is ever forwarded.
   */
  readonly queryCarriers: readonly string[]
  /** Text that may precede a model's name in a body without any meaning. */
  readonly modelPrefix: string
  /** A header that every request with a body must have, and its accepted values. */
  readonly versionHeader: { readonly name: string, readonly accepted: readonly string[] } | null
  /** The upstream credential as one header. */
  readonly upstreamHeader: (secret: string) => readonly [name: string, value: string]
  /** The error envelope that clients of this family read. */
  readonly errorBody: (facts: ErrorFacts) => Record<string, unknown>
  /** Headers that tell a caller which rate limit it has reached, as clients of this family know them. */
  readonly limitHeaders: (facts: LimitFacts) => Record<string, string>
  /** The family's own way; a protocol may have another one. */
  readonly streamError: TellStreamError
  /** Whether its clients skip comments within a stream of events. */
  readonly skipsComments: boolean
  /** The base address for clients of this family, as a hint in 404 messages. `origin` has no slash at its end. */
  readonly baseUrl: (origin: string) => string
}

/** Whether a reply's usage counts: `yes` also counts its absence, `optional` does not, `no` never feeds token counters. */
export type Metered = 'yes' | 'optional' | 'no'

/** `Label` is its protocol, `Name` are the protocols that allow it. */
export interface EndpointOf<
  Label extends string = string, Name extends string = string, Id extends string = string, Schema extends string = string
> {
  /** Unique name, for options such as replaced schemas: `messages`, `messages.count_tokens`. */
  readonly id: Id
  readonly protocol: Label
  readonly family: Family
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Segments after the version prefix. `:name` is one segment; see `action` for the last colon. */
  readonly tail: readonly string[]
  /** The word after the last colon of the path, if the model is in the path. */
  readonly action: string | null
  /** Body of the request. `form` is JSON or multipart/form-data. */
  readonly body: 'none' | 'json' | 'form'
  /** A file in `schemas/`, without its extension; null if there is no JSON body to check. */
  readonly schema: Schema | null
  readonly metered: Metered
  /** How a caller asks for a stream: a body field, the action itself, or not at all. */
  readonly streams: 'body' | 'path' | 'never'
  /** About how many bytes of a stream bring one token. */
  readonly streamBytesPerToken: number
  /** Top-level body field that names the model; null if the path does or there is none. */
  readonly modelField: string | null
  /** Body fields that name further models, any of which may be used: paths of keys, `*` for each element of a list. */
  readonly otherModels: readonly string[]
  /** Those of them whose models may be charged in place of the requested one, or beside it. */
  readonly substitutes: readonly string[]
  /** The same inside the conversation, which may contain tools that name models. Null if it cannot. */
  readonly modelsWithin: {
    /** Where it may contain them: hardly any conversation does. */
    readonly places: readonly string[]
    readonly models: readonly string[]
  } | null
  /** `gen_ai.operation.name` of OpenTelemetry's GenAI conventions. */
  readonly operation: string
  /** How the reply reports its usage; null if it is not metered. */
  readonly usage: UsageRules | null
  /** How an earlier response ended that the reply repeats, and where it has its usage; null for an endpoint that repeats none. */
  readonly replays: UsageRules | null
  /** Where its texts and settings are; null if there are none. */
  readonly text: TextRules | null
  /** The body field with the id of what the provider keeps for the account that made it, unknown to any other. Null for none. */
  readonly boundIdField: string | null
  /** Null if the provider holds no conversations. */
  readonly heldConversation: HeldConversation | null
  readonly streamError: TellStreamError
  /** How the request limits what is produced; null if nothing does. */
  readonly output: OutputFields | null
  /** Protocols that allow this endpoint: its own, or for the model list any protocol of the family. */
  readonly allowedBy: readonly Name[]
}

/** One small request, as users of the protocol write it: for the commands that the gateway prints, and for docs. */
export interface ProtocolExample {
  readonly model: string
  readonly path: (model: string) => string
  readonly body: (model: string) => Record<string, unknown>
}

/** Everything that is known of one protocol. */
export interface Protocol<Name extends string = string, Id extends string = string, Schema extends string = string> {
  readonly name: Name
  readonly family: Family
  readonly endpoints: ReadonlyArray<EndpointOf<Name, Name, Id, Schema>>
  readonly example: ProtocolExample
  /** Replies of the simulated upstream, by the id of the endpoint. */
  readonly simulations: Readonly<Record<string, Simulation>>
}
