import type { ClusterNode, Redis } from 'ioredis'
import { OptionError } from '../../core/config/options.js'
import { readPassword, withPassword } from '../password.js'
import { loadRedis } from '../peer.js'
import type { Client } from './ready.js'
import { hearAsking, hearSentinels } from './unheard.js'
import type { StateConfig } from '../types.js'

// Without these settings, commands wait in queues for as long as the server is away, and are sent again when it is back.
const settings = {
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  autoResubscribe: false,
  connectTimeout: 5_000,
  // A connection that is silent while it owes an answer is replaced.
  socketTimeout: 5_000,
  reconnectOnError: leavesReplica(1_000),
}

const leastCommandMs = 2_000

const retryStrategy = (times: number): number => Math.min(50 * times, 250)

interface Connections {
  readonly client: Client
  /** For pushed messages. */
  readonly pushed: Client
}

/** Connects to what `config` names: one server, one that Sentinels name, or a cluster. */
export async function connect (config: StateConfig, timeoutMs: number): Promise<Connections> {
  const { Redis: Single, Cluster: Many } = await loadRedis()
  const { url } = config
  if (url === undefined) throw new OptionError('state.url', 'is required for the engine redis')
  // The breaker's own time ends first; this one bounds what the client sends by itself. Its timer does not look at the sockets once more:
  // it must not end while the process is busy, as a reload of thousands of keys makes it.
  const commandTimeout = Math.max(timeoutMs * 4, leastCommandMs)
  const password = readPassword('state.password', config.password)
  const sentinelPassword = readPassword('state.sentinel.password', config.sentinel?.password)
  // Redis keeps connections open whose password has been changed: only a new connection needs the new one.
  const follow = ({ options }: Redis): void => {
    for (const [name, read] of Object.entries({ password, sentinelPassword })) {
      if (read !== null) Object.defineProperty(options, name, { get: read, enumerable: true })
    }
  }
  const own = { ...settings, commandTimeout, retryStrategy }
  const address = withPassword(url, password)
  const one = (): Redis => {
    const client = config.sentinel === undefined
      ? new Single(address, own)
      : new Single({ ...own, ...sentinelOf(address, config.sentinel.name), sentinelPassword: sentinelPassword?.() })
    follow(client)
    hearSentinels(client)
    return client
  }
  const pushed = one()
  if (config.cluster !== true) return { client: one(), pushed }
  const named = addressOf(pushed)
  let known = [named]
  const client = new Many([url], {
    enableOfflineQueue: false,
    redisOptions: { ...settings, commandTimeout, ...loginOf(url) },
    // Each connection looks up the name itself: with an address in its place the certificate would not match.
    dnsLookup: (name: string, found: (error: null, name: string) => void) => found(null, name),
    // By itself the client asks the node of `url` alone once it has lost all nodes, and that one may be gone for good.
    clusterRetryStrategy: (times) => {
      Reflect.set(client, 'startupNodes', times % 2 === 0 ? known : [url])
      return retryStrategy(times)
    },
  })
  client.on('refresh', () => { known = [named, ...client.nodes().map(addressOf)] })
  client.on('+node', (node) => {
    follow(node)
    hearAsking(node)
  })
  // Every node pushes everything. The client's own subscriber does not say when it goes to another one and may have missed some.
  pushed.options.retryStrategy = (times) => {
    Object.assign(pushed.options, known[times % known.length])
    return retryStrategy(times)
  }
  return { client, pushed }
}

function addressOf ({ options: { host, port } }: Redis): ClusterNode {
  return { host, port }
}

/**
 * Whether an error means that the connection should be made anew: its server was a primary and is a replica now, and its address may lead
 * to the new primary. True at most once every `everyMs`, because a replica still reads.
 */
export function leavesReplica (everyMs: number): (error: Error) => boolean {
  let leftAt = -Infinity
  return ({ message }) => {
    const leaves = /\b(?:READONLY|MASTERDOWN) /.test(message) && performance.now() - leftAt >= everyMs
    if (leaves) leftAt = performance.now()
    return leaves
  }
}

/** Login of the configured node, for the nodes that it names: the cluster tells only their host and port. */
function loginOf (url: string): { username?: string, password?: string, tls?: object } {
  const { username, password, protocol } = new URL(url)
  return {
    ...username !== '' && { username: decodeURIComponent(username) },
    ...password !== '' && { password: decodeURIComponent(password) },
    ...protocol === 'rediss:' && { tls: {} },
  }
}

interface SentinelOptions {
  readonly name: string
  readonly sentinels: Array<{ host: string, port: number }>
  readonly db?: number
  readonly failoverDetector: true
  readonly sentinelCommandTimeout: number
  readonly sentinelReconnectStrategy: () => number
}

/** Options of one Sentinel, which names the server and the other Sentinels, by host and port only. */
function sentinelOf (url: string, name: string): SentinelOptions {
  const { protocol, hostname, port, pathname } = new URL(url)
  const db = Number(pathname.slice(1))
  return {
    ...loginOf(url),
    name,
    // A primary from which Sentinels hand over takes writes for ten seconds more, which nobody will count.
    failoverDetector: true,
    // One that takes connections and does not answer would be waited for, though others answer.
    sentinelCommandTimeout: leastCommandMs,
    // By itself the client goes back after a minute: Sentinels that were restarted one after the other would tell it nothing.
    sentinelReconnectStrategy: () => 1_000,
    sentinels: [{ host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port || 26_379) }],
    ...db > 0 && { db },
    ...protocol === 'rediss:' && { enableTLSForSentinelMode: true, sentinelTLS: {} },
  }
}
