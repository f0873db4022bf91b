/**
 * The vocabulary of the protocol table. Everything in this folder is data and tiny pure functions: the request
 * pipeline reads it and never branches on a provider's name.
 */
import type { Simulation } from './simulate-text.js'
import type { TextRules } from './text-rules.js'
import type { UsageRules } from './usage-rules.js'

/** The conventions of one provider kind: version prefix, credential sources, error envelope. */
export type FamilyName = 'openai' | 'anthropic' | 'gemini'

/** Sources of credentials that callers may use where an operator says so. */
export type OptionalSource = 'api-key' | 'gemini-bearer'

export interface HeaderSource {
  readonly in: 'header'
  readonly name: string
  /** An authentication scheme in front of the secret, compared in any case (RFC 9110 11.1). */
  readonly scheme?: 'bearer'
  /** Not read unless the operator lists this name in the auth option `optionalSources`. */
  readonly optional?: OptionalSource
}

export interface QuerySource {
  readonly in: 'query'
  readonly name: string
}

export type CredentialSource = HeaderSource | QuerySource

/** What an error is about; each family has its own word for it. */
export type ErrorKind =
  | 'invalid_request' | 'authentication' | 'permission' | 'billing' | 'not_found' | 'too_large' | 'rate_limit'
  | 'internal' | 'overloaded' | 'timeout'

/** A limit of ours that a request has met, for the headers of the refusal. */
export interface LimitFacts {
  readonly limit: 'requests' | 'tokens'
  /** What it allows in a minute. */
  readonly allowed: number
  readonly free: number
  /** When asking again makes sense, from now. */
  readonly resetMs: number
}

/** Where a request says how much it may produce: paths of fields, the first that is there counts. */
export interface OutputFields {
  /** Most tokens of one answer. */
  readonly max: ReadonlyArray<readonly string[]>
  /** How many answers. */
  readonly choices: ReadonlyArray<readonly string[]>
  /** The switch by which the work goes on after the reply, which then tells no usage. */
  readonly goesOn?: readonly string[]
  /** What it may let the provider use that is charged by the piece. */
  readonly tools?: readonly PaidTool[]
}

/** A tool of the provider's, as an entry of the body's list `tools`. */
export interface PaidTool {
  readonly unit: 'search' | 'file_search'
  /** How the entry begins its `type`, or the fields that it has instead. */
  readonly names: readonly string[]
  /** Field of the entry, or of the body for all of them, that says how often it may be used; null where nothing does. */
  readonly most: string | null
}

/** Everything that an envelope may say of one failure. Never holds an address, a URL with a query, or a key. */
export interface ErrorFacts {
  readonly status: number
  readonly kind: ErrorKind
  readonly code: string
  readonly message: string
  /** The failing field of the request, as a dotted path, where there is one. */
  readonly param: string | null
  readonly requestId: string
  /** After how long a retry makes sense, where that is known. */
  readonly retryAfterMs?: number | null
}

/** What a stream told of itself before it broke off; null for what it did not tell. */
export interface StreamFacts {
  readonly id: string | null
  readonly model: string | null
  /** Seconds since the epoch. */
  readonly createdAt: number | null
  /** Number of its last event. */
  readonly sequence: number | null
}

/** What tells a caller of a stream that it failed after it began. Bytes of whole events. */
export type TellStreamError = (facts: ErrorFacts, stream: StreamFacts) => string

export interface Family {
  readonly name: FamilyName
  /** `gen_ai.provider.name` of OpenTelemetry's GenAI conventions: whose API it is, whoever serves it. */
  readonly provider: string
  /** The one version segment that canonical URLs of this family carry. */
  readonly prefix: 'v1' | 'v1beta'
  /** Where the caller's credential may stand, first match wins. */
  readonly credentials: readonly CredentialSource[]
  /**
   * Query parameters that may carry a credential at its upstreams, whether or not callers may use them here: lower case, with
   * `_` for any separator. None of them is ever sent on.
   */
  readonly queryCarriers: readonly string[]
  /** What may stand in front of a model's name in a body, and means nothing. */
  readonly modelPrefix: string
  /** A header that every request with a body must carry, and its accepted values. */
  readonly versionHeader: { readonly name: string, readonly accepted: readonly string[] } | null
  /** The upstream credential as one header. */
  readonly upstreamHeader: (secret: string) => readonly [name: string, value: string]
  /** The error envelope as clients of this family parse it. */
  readonly errorBody: (facts: ErrorFacts) => Record<string, unknown>
  /** Headers that tell a caller which rate it has met, as clients of this family know them. */
  readonly limitHeaders: (facts: LimitFacts) => Record<string, string>
  /** In the family's own way; a protocol may have another. */
  readonly streamError: TellStreamError
  /** The base address that a client of this family is given, as a hint in 404 messages. `origin` has no slash at its end. */
  readonly baseUrl: (origin: string) => string
}

/** Where a reply's usage counts: `yes` also counts its absence, `optional` does not, `no` never feeds token counters. */
export type Metered = 'yes' | 'optional' | 'no'

/** `Label` is its protocol, and `Name` are those that open it. */
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
  /** The word after the last colon of the path, where the model is in the path. */
  readonly action: string | null
  /** What the request carries. `form` is JSON or multipart/form-data. */
  readonly body: 'none' | 'json' | 'form'
  /** A file in `schemas/`, without its ending; null where there is no JSON body to check. */
  readonly schema: Schema | null
  readonly metered: Metered
  /** How a caller asks for a stream: a body field, the action itself, or not at all. */
  readonly streams: 'body' | 'path' | 'never'
  /** Top-level body field that names the model, or null where the path does or there is none. */
  readonly modelField: string | null
  /** Body fields that name more models, of which any may be used: paths of keys, `*` for each element of a list. */
  readonly otherModels: readonly string[]
  /** Those of them whose models take the place of the one that is asked for. */
  readonly substitutes: readonly string[]
  /** The same within what is said: a conversation may bring tools that name models. Null where it cannot. */
  readonly modelsWithin: {
    /** Where it brings them: hardly any does. */
    readonly places: readonly string[]
    readonly models: readonly string[]
  } | null
  /** `gen_ai.operation.name` of OpenTelemetry's GenAI conventions. */
  readonly operation: string
  /** How the reply tells its usage; null where it is not metered. */
  readonly usage: UsageRules | null
  /** How a stream ends that tells again what another request was metered for; null where there is none. */
  readonly replays: UsageRules | null
  /** Where its texts and settings stand; null where there are none. */
  readonly text: TextRules | null
  /**
   * The field of the body that names what the provider keeps for the account it was made with: it means nothing to any other. Null for
   * none.
   */
  readonly boundIdField: string | null
  readonly streamError: TellStreamError
  /** How the request bounds what is produced; null where nothing is. */
  readonly output: OutputFields | null
  /** Protocols that open this endpoint: its own, or for the model list any protocol of the family. */
  readonly allowedBy: readonly Name[]
}

/** One small request, as users of the protocol write it: for the commands that the gateway prints, and for docs. */
export interface ProtocolExample {
  readonly model: string
  readonly path: (model: string) => string
  readonly body: (model: string) => Record<string, unknown>
}

/** All that is known of one protocol. */
export interface Protocol<Name extends string = string, Id extends string = string, Schema extends string = string> {
  readonly name: Name
  readonly family: Family
  readonly endpoints: ReadonlyArray<EndpointOf<Name, Name, Id, Schema>>
  readonly example: ProtocolExample
  /** What the simulated upstream answers, by the id of the endpoint. */
  readonly simulations: Readonly<Record<string, Simulation>>
}
