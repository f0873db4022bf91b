import { checkOptions, withDefaults } from '../core/config/options.js'
import { drainDefaults, type DrainOptions } from './drain.js'

export interface TransportOptions {
  /**
   * Connections to one upstream; each carries one request at a time.
   * @defaultValue 1,024
   */
  connections?: number
  /**
   * Requests that may wait for a connection at the same time; one more is refused with 503.
   * @defaultValue 1,024
   */
  maxQueued?: number
  /**
   * How long each may wait, in milliseconds; after that it is refused with 503.
   * @defaultValue 2,000
   */
  queueMs?: number
  /**
   * Time from the request's last byte to the reply's headers, in milliseconds. 0 for no end.
   * @defaultValue 900,000 (15 minutes): a model may think long
   */
  headersTimeoutMs?: number
  /**
   * How long the upstream may be silent within a reply, and the caller may read nothing of it, in milliseconds. 0 for no end.
   * @defaultValue 300,000 (5 minutes)
   */
  idleTimeoutMs?: number
  /**
   * How long making a connection to an upstream may take, in milliseconds.
   * @defaultValue 10,000
   */
  connectTimeoutMs?: number
  /**
   * The longest silence of an upstream, in milliseconds, before the caller of an event stream gets a comment (`: keepalive`) between two
   * events; repeated as long as the silence lasts. For proxies and load balancers that cut idle connections. Not in Gemini's streams,
   * because Google's client for Python fails on comments. 0 for none.
   * @defaultValue 0
   */
  keepAliveCommentMs?: number
  /**
   * How far a reply is still read for its usage after the caller has left. `maxMs: 0` cancels at once.
   * @defaultValue `{}`
   */
  drain?: Partial<DrainOptions>
  /**
   * More options of undici's connector, such as `ca`. TLS verification is on unless this says otherwise.
   * @defaultValue `{}`
   */
  tls?: Record<string, unknown>
}

export interface ForwardOptions extends TransportOptions {
  /**
   * Whether to mount a route for every endpoint here. `false` for a host that mounts them itself.
   * @defaultValue true
   */
  routes?: boolean
}

/** Transport options with every default filled in. */
export type DispatcherOptions = Required<Omit<TransportOptions, 'drain'>> & { drain: DrainOptions }

export const transportDefaults: Omit<DispatcherOptions, 'drain'> = {
  connections: 1_024,
  maxQueued: 1_024,
  queueMs: 2_000,
  headersTimeoutMs: 900_000,
  idleTimeoutMs: 300_000,
  connectTimeoutMs: 10_000,
  keepAliveCommentMs: 0,
  tls: {},
}

const transportChecks = {
  'a whole number of at least 1': ['connections', 'connectTimeoutMs'],
  'a whole number of at least 0': ['maxQueued', 'headersTimeoutMs'],
  'a whole number of 1 to 2147483647': ['queueMs'],
  'a whole number of 0 to 2147483647': ['idleTimeoutMs', 'keepAliveCommentMs'],
  'an object': ['drain', 'tls'],
}

const drainChecks = {
  'a whole number of 0 to 2147483647': ['maxMs'],
  'a whole number of at least 0': ['maxBytes', 'maxConcurrent'],
}

/** Throws `LLM_GATEWAY_OPTION`, naming `plugin.option`. `flags`: further options, which are booleans. */
export function checkTransport (plugin: string, options: TransportOptions, flags: readonly string[] = []): void {
  checkOptions(plugin, options, { ...transportChecks, 'a boolean': flags })
  checkOptions(`${plugin}.drain`, options.drain ?? {}, drainChecks)
}

/** Valid transport options with their defaults. */
export function withTransportDefaults ({ drain = {}, ...others }: TransportOptions): DispatcherOptions {
  return { ...withDefaults(transportDefaults, others), drain: withDefaults(drainDefaults, drain) }
}
