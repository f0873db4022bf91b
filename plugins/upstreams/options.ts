import type { Notes } from '../core/upstream/upstream.js'
import type { ProtocolName } from '../protocols/index.js'
import type { CredentialFunction } from './secret.js'

export interface CredentialFile {
  /** Its path. */
  readonly file: string
}

export interface UpstreamOptions {
  /** Base address. `{model}` in its path is the model that is asked for. */
  url: string
  /**
   * What follows the base address: the family's version and the path (`canonical`; a version at the end of `url` is the
   * gateway's business and dropped), or only the path behind the version (`verbatim`), for a base that has a version of its own.
   * @defaultValue `canonical`
   */
  path?: 'canonical' | 'verbatim'
  /**
   * Parameters that are sent with each request, such as `api-version`. They win over the caller's.
   * @defaultValue `{}`
   */
  query?: Readonly<Record<string, string | number>>
  /**
   * Headers that are sent with each request. They win over the caller's.
   * @defaultValue `{}`
   */
  headers?: Readonly<Record<string, string>>
  /**
   * The header that carries the credential, where it is not the one of the request's family; `authorization` carries it as Bearer token.
   * @defaultValue that of the request's family
   */
  credentialHeader?: string
  /**
   * The provider's secret; or `forward`: the caller's own travels on; or a file that holds it, read again when it changes; or in code
   * a function, asked again when what it gave has ended, or in each half minute where it does not tell an end.
   * Undefined, as of a variable that is not set, fails the start.
   * @defaultValue none is sent
   */
  credential?: string | CredentialFile | CredentialFunction | undefined
  /**
   * What its prices are times those of the price lists, such as 1.1 for a region that costs a tenth more.
   * @defaultValue 1
   */
  priceFactor?: number
  /**
   * Names of models as callers say them, and as this upstream knows them.
   * @defaultValue the same names
   */
  models?: Readonly<Record<string, string>>
  /**
   * Upstreams with the same account share its rate limits: none of them is asked again where one was refused.
   * @defaultValue the upstream's own name
   */
  account?: string
  /**
   * The protocols that it speaks.
   * @defaultValue whichever its groups use it for
   */
  protocols?: readonly ProtocolName[]
}

export interface MemberOptions<Upstream extends string = string> {
  /** Name of an upstream. */
  upstream: Upstream
  /** Its share of the requests, by that of the others. @defaultValue 1 */
  weight?: number
  /**
   * Requests that it may have at the same time.
   * @defaultValue any number
   */
  concurrency?: number
  /** Members of a higher tier are asked only where those of all lower ones are out. @defaultValue 1 */
  tier?: number
}

/** Statuses that ask for another member; each may be written as a text, too. */
export type RetryStatus = 429 | 500 | 502 | 503 | 504 | 529

export type RetryCause = 'connect' | 'reset' | 'timeout' | 'first_event' | `${RetryStatus}`

export interface PoolOptions<Upstream extends string = string> {
  /** Names of upstreams, or more of each. */
  members: ReadonlyArray<Upstream | MemberOptions<Upstream>>
  /** Sends of one request at most, the first included. @defaultValue 3 */
  attempts?: number
  /**
   * After which failures another member is asked.
   * @defaultValue those after which no provider has done paid work, `connect`, 429, 503 and 529
   */
  retryOn?: ReadonlyArray<RetryCause | RetryStatus>
  /** What keeps to one member, so that its prompt cache stays warm: a conversation, a key, or nothing. @defaultValue `conversation` */
  affinity?: 'conversation' | 'key' | 'none'
  /**
   * How long what is bound to an account, such as a stored response, is remembered with its member, in milliseconds.
   * @defaultValue 86,400,000 (a day)
   */
  affinityTtlMs?: number
  /**
   * Milliseconds to the headers of an attempt; then it has failed with `timeout`.
   * @defaultValue that of the transport, `forward.headersTimeoutMs`
   */
  attemptTimeoutMs?: number
  /**
   * Milliseconds that all attempts together have to the headers of a reply.
   * @defaultValue 900,000
   */
  deadlineMs?: number
}

export interface UpstreamsOptions<Upstream extends string = string, Pool extends string = string> {
  /**
   * Where requests go, by name: `{ main: { url: 'https://provider.example', credential: process.env.PROVIDER_KEY } }`.
   * @defaultValue `{}`
   */
  upstreams?: Readonly<Record<Upstream, UpstreamOptions>>
  /**
   * Upstreams that stand in for each other, by name: `{ both: { members: ['a', 'b'] } }`.
   * @defaultValue `{}`
   */
  pools?: Readonly<Record<Pool, PoolOptions<Upstream>>>
  /**
   * Where it is remembered which upstream made what is bound to its account: a state engine's notes.
   * @defaultValue this process's memory
   */
  notes?: Notes
  /**
   * Whose knowledge of how upstreams do is shared: apps that are given the same object, such as one that takes over from another.
   * @defaultValue known to this app alone
   */
  health?: object
}
