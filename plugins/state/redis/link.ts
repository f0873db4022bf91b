import { createHash } from 'node:crypto'
import type { Redis } from 'ioredis'
import { OptionError } from '../../core/config/options.js'
import { StoreDownError } from '../../core/balances/store-down.js'
import { createBreaker, type Breaker } from './breaker.js'
import { readPassword, withPassword } from '../password.js'
import { loadRedis } from '../peer.js'
import { heardBy, ready, type Client } from './ready.js'
import { leavesReplica } from './replica.js'
import { scripts, type ScriptName } from './scripts.js'
import { hearAsking, keepSubscribed } from './unheard.js'
import type { StateConfig } from '../types.js'

/** One Redis, with one connection for commands and one for pushed messages. */
export interface RedisLink {
  /** Rejects with StoreDownError, in bounded time, never from a queue. `key`: one of the keys of the command. */
  readonly ask: <T>(call: (client: Client) => Promise<T>, key?: string) => Promise<T>
  readonly script: (name: ScriptName, keys: readonly string[], values: ReadonlyArray<string | number>) => Promise<unknown>
  /** Calls `onGap` when messages may have been missed. */
  readonly subscribe: (channel: string, onMessage: (text: string) => void, onGap: () => void) => Promise<void>
  readonly close: () => Promise<void>
}

const maxPending = 5_000
const probeEveryMs = 100

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
const retryStrategy = (times: number): number => Math.min(50 * times, 250)

/** Resolves when the server is ready; rejects if it is not within `startMs`. */
export async function linkRedis (config: StateConfig, startMs = 5_000): Promise<RedisLink> {
  const timeoutMs = config.commandTimeoutMs ?? 50
  const connect = await connector(config, timeoutMs)
  const client = connect()
  const pushed = connect()
  const disconnect = (): void => [client, pushed].forEach((each) => each.disconnect())
  const trouble = heardBy(client)
  await Promise.all([ready(client, startMs, trouble), ready(pushed, startMs, heardBy(pushed))]).catch((error: unknown) => {
    disconnect()
    throw error
  })
  const gaps: Array<() => void> = []
  const tellGap = (): void => gaps.forEach((onGap) => onGap())
  const breakers = new Map<string, Breaker>()
  /** In a cluster one for each hash tag: a node that dies stops only the groups that it has. */
  const breakerOf = (key: string): Breaker => {
    const tag = config.cluster === true ? String(/{.+?}/.exec(key)) : ''
    const found = breakers.get(tag)
    if (found !== undefined) return found
    /** A server that says why it does not answer this command is there, too. */
    const probe = async (): Promise<void> => {
      await (key === '' ? client.ping() : client.exists(key)).catch((error) => { if (answerOf(error) === null) throw error })
    }
    const breaker = createBreaker({ timeoutMs, maxPending, probeEveryMs, answerOf, probe, trouble, onRecovery: tellGap })
    breakers.set(tag, breaker)
    return breaker
  }
  const ask: RedisLink['ask'] = async (call, key = '') => await breakerOf(key).run(async () => await call(client))
  return {
    ask,
    script: async (name, keys, values) => await ask(async (asked) => await runScript(asked, name, keys, values), keys[0]),
    subscribe: async (channel, onMessage, onGap) => {
      pushed.on('message', (_: string, text: string) => onMessage(text))
      gaps.push(onGap)
      await keepSubscribed(pushed, channel, tellGap)
    },
    close: async () => {
      for (const breaker of breakers.values()) breaker.close()
      disconnect()
    },
  }
}

/** Errors of a server that accepts no writes. It refuses already the first one of a script, so that nothing was done. */
const takesNothing = /\b(?:OOM|MISCONF|NOREPLICAS|READONLY) /

/** The error that a server answers in place of one of several steps. */
export function refusalOf (cause: Error): StoreDownError {
  const isStep = !takesNothing.test(cause.message)
  return new StoreDownError('failed', { asked: isStep, refused: isStep, cause })
}

/**
 * Null for an error that is no answer. A server that accepts no writes still reads, and one that finds a foreign value under one key still
 * counts under others.
 */
function answerOf (error: unknown): StoreDownError | null {
  const { name, message } = Object(error)
  return name === 'ReplyError' ? new StoreDownError('failed', { asked: !takesNothing.test(message), cause: error }) : null
}

async function connector (config: StateConfig, timeoutMs: number): Promise<() => Client> {
  const { Redis: Single, Cluster: Many } = await loadRedis()
  const { url } = config
  if (url === undefined) throw new OptionError('state.url', 'is required for the engine redis')
  // The breaker's own time ends first; this one bounds what the client sends by itself.
  const commandTimeout = timeoutMs * 4
  const password = readPassword('state.password', config.password)
  const sentinelPassword = readPassword('state.sentinel.password', config.sentinel?.password)
  // Redis keeps connections open whose password has been changed: only a new connection needs the new one.
  const follow = ({ options }: Redis): void => {
    for (const [name, read] of Object.entries({ password, sentinelPassword })) {
      if (read !== null) Object.defineProperty(options, name, { get: read, enumerable: true })
    }
  }
  if (config.cluster !== true) {
    return () => {
      const own = { ...settings, commandTimeout, retryStrategy }
      const address = withPassword(url, password)
      const client = config.sentinel === undefined
        ? new Single(address, own)
        : new Single({ ...own, ...sentinelOf(address, config.sentinel.name), sentinelPassword: sentinelPassword?.() })
      follow(client)
      return client
    }
  }
  const options = {
    enableOfflineQueue: false,
    clusterRetryStrategy: retryStrategy,
    redisOptions: { ...settings, commandTimeout, ...loginOf(url) },
    // Each connection looks up the name itself: with an address in its place the certificate would not match.
    dnsLookup: (name: string, found: (error: null, name: string) => void) => found(null, name),
  }
  return () => new Many([url], options).on('+node', (node) => {
    follow(node)
    hearAsking(node)
  })
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
}

/** Options of one Sentinel, which names the server and the other Sentinels, by host and port only. */
function sentinelOf (url: string, name: string): SentinelOptions {
  const { protocol, hostname, port, pathname } = new URL(url)
  const db = Number(pathname.slice(1))
  return {
    ...loginOf(url),
    name,
    sentinels: [{ host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port || 26_379) }],
    ...db > 0 && { db },
    ...protocol === 'rediss:' && { enableTLSForSentinelMode: true, sentinelTLS: {} },
  }
}

const digests = new Map(Object.entries(scripts).map(([name, text]) => [name, createHash('sha1').update(text).digest('hex')]))

async function runScript (
  client: Client, name: ScriptName, keys: readonly string[], values: ReadonlyArray<string | number>
): Promise<unknown> {
  try {
    return await client.evalsha(String(digests.get(name)), keys.length, ...keys, ...values)
  } catch (error) {
    if (!String(error).includes('NOSCRIPT')) throw error
    return await client.eval(scripts[name], keys.length, ...keys, ...values)
  }
}
