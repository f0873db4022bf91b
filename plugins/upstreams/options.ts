import type { Notes } from '../core/upstream/upstream.js'
import type { ProtocolName } from '../protocols/index.js'
import type { CredentialFunction } from './secret.js'

interface CredentialFile {
  /** Path of the file. */
  readonly file: string
}

export interface UpstreamOptions {
  /** Base address. `{model}` in its path is the model that is asked for. */
  url: string
  /**
   * What is put behind the base address: the family's version and the path (`canonical`; a version at the end of `url` is
   * dropped), or only the path behind the version (`verbatim`), for a base that has a version of its own.
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
   * The header that carries the credential, if it is not that of the request's family. In `authorization` it is a Bearer token.
   * @defaultValue that of the request's family
   */
  credentialHeader?: string
  /**
   * The provider's secret; or `forward`, to pass the caller's own on; or a file that holds it, read again when it changes; or in code
   * a function, called again before its secret expires, or every half minute if it does not say when.
   * Undefined, as for a variable that is not set, fails the start.
   * @defaultValue none is sent
   */
  credential?: string | CredentialFile | CredentialFunction | undefined
  /**
   * Its prices are those of the price lists times this, such as 1.1 for a region that costs a tenth more.
   * @defaultValue 1
   */
  priceFactor?: number
  /**
   * This upstream's names of models, by the names that callers use.
   * @defaultValue the same names
   */
  models?: Readonly<Record<string, string>>
  /**
   * Upstreams with the same account share its rate limits: after a 429 from one, none of them is asked again for that request.
   * @defaultValue the upstream's own name
   */
  account?: string
  /**
   * The protocols that it speaks.
   * @defaultValue those that its groups use it for
   */
  protocols?: readonly ProtocolName[]
}

export interface MemberOptions<Upstream extends string = string> {
  /** Name of an upstream. */
  upstream: Upstream
  /** Its share of the requests, relative to the other members. @defaultValue 1 */
  weight?: number
  /**
   * The most requests that run there at the same time.
   * @defaultValue any number
   */
  concurrency?: number
  /** Members of a higher tier are asked only if those of all lower tiers are out. @defaultValue 1 */
  tier?: number
}

/** Statuses after which another member is asked; each may also be written as a text. */
type RetryStatus = 429 | 500 | 502 | 503 | 504 | 529

export type RetryCause = 'connect' | 'reset' | 'timeout' | 'first_event' | `${RetryStatus}`

export interface PoolOptions<Upstream extends string = string> {
  /** Upstreams, each by its name or with options. */
  members: ReadonlyArray<Upstream | MemberOptions<Upstream>>
  /** How often one request is sent at most, the first time included. @defaultValue 3 */
  attempts?: number
  /**
   * Failures after which another member is asked.
   * @defaultValue those after which no provider has done paid work: `connect`, 429, 503 and 529
   */
  retryOn?: ReadonlyArray<RetryCause | RetryStatus>
  /** What stays with one member, so that its prompt cache is used: a conversation, a key, or nothing. @defaultValue `conversation` */
  affinity?: 'conversation' | 'key' | 'none'
  /**
   * How long the member that made something bound to its account, such as a stored response, is remembered, in milliseconds.
   * @defaultValue 86,400,000 (a day)
   */
  affinityTtlMs?: number
  /**
   * Milliseconds to the headers of an attempt; after that it has failed with `timeout`.
   * @defaultValue that of the transport, `forward.headersTimeoutMs`
   */
  attemptTimeoutMs?: number
  /**
   * Milliseconds to the headers of a reply for all attempts together.
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
   * Where the gateway remembers which upstream made what is bound to its account: a state engine's notes.
   * @defaultValue this process's memory
   */
  notes?: Notes
  /**
   * Apps that are given the same object share what they know of the upstreams' health, such as an app that replaces another.
   * @defaultValue not shared
   */
  health?: object
}
