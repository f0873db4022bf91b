import { hash } from 'node:crypto'
import { StoreDownError } from '../../core/balances/store-down.js'
import { OptionError } from '../../core/config/options.js'
import { Breaker } from './breaker.js'
import { connect } from './connect.js'
import { heardBy, ready, type Client } from './ready.js'
import { scripts, type ScriptName } from './scripts.js'
import { keepSubscribed } from './unheard.js'
import type { StateConfig } from '../types.js'

/** One Redis, with one connection for commands and one for pushed messages. */
export interface RedisLink {
  /** What an operator should know at start; null for nothing. */
  readonly notice: string | null
  /** Rejects with StoreDownError, in bounded time, never from a queue. `key`: one of the keys of the command. */
  readonly ask: <T>(call: (client: Client) => Promise<T>, key?: string) => Promise<T>
  readonly script: (name: ScriptName, keys: readonly string[], values: ReadonlyArray<string | number>) => Promise<unknown>
  /** Calls `onGap` when messages may have been missed. */
  readonly subscribe: (channel: string, onMessage: (text: string) => void, onGap: () => void) => Promise<void>
  readonly close: () => Promise<void>
}

const maxPending = 5_000
const lonelyNode = 'state.url is a node of a Redis Cluster: without state.cluster, whatever other nodes have is answered 503'
const probeEveryMs = 100

/** Resolves when the server is ready; rejects if it is not within `startMs`. */
export async function linkRedis (config: StateConfig, startMs = 5_000): Promise<RedisLink> {
  const timeoutMs = config.commandTimeoutMs ?? 50
  const { client, pushed } = await connect(config, timeoutMs)
  const disconnect = (): void => [client, pushed].forEach((each) => each.disconnect())
  const trouble = heardBy(client)
  await Promise.all([ready(client, startMs, trouble), ready(pushed, startMs, heardBy(pushed))]).catch((error: unknown) => {
    disconnect()
    throw error
  })
  const info = String(await client.info('server').catch(String))
  if (info.includes('_mode:sentinel')) {
    disconnect()
    throw new OptionError('state.url', 'is a Sentinel: state.sentinel must name the primary')
  }
  const gaps: Array<() => void> = []
  const tellGap = (): void => gaps.forEach((onGap) => onGap())
  const breakers = new Map<string | undefined, Breaker>()
  const newBreaker = (key: string): Breaker => {
    const probe = async (): Promise<void> => await probeServer(client, key)
    return new Breaker({ timeoutMs, maxPending, probeEveryMs, answerOf, probe, trouble, onRecovery: tellGap })
  }
  const ask: RedisLink['ask'] = async (call, key = '') => {
    // In a cluster one for each hash tag: a node that dies stops only the groups that it has. It may have any key without a tag.
    const tag = config.cluster === true ? /{.+?}/.exec(key)?.[0] : ''
    const breaker = breakers.get(tag) ?? newBreaker(key)
    const answer = breaker.run(async () => await call(client))
    if (tag === undefined) breaker.close()
    else breakers.set(tag, breaker)
    return await answer
  }
  return {
    notice: info.includes('_mode:cluster') && config.cluster !== true ? lonelyNode : null,
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

/** A server that says why it does not answer this command is there, too. `key`: one in the slot to ask for. */
async function probeServer (client: Client, key: string): Promise<void> {
  await client.exists(key).catch((error) => { if (answerOf(error) === null) throw error })
}

/** Errors of a server that accepts no writes. It refuses already the first one of a script, so that nothing was done. */
const takesNothing = /\b(?:OOM|MISCONF|NOREPLICAS|READONLY) /

/** The error that a server answers in place of one of several steps. */
export function refusalOf (cause: Error): StoreDownError {
  const isStep = !takesNothing.test(cause.message)
  return new StoreDownError('failed', { asked: isStep, refused: isStep, cause })
}

/**
 * What a server answers in place of a whole command, by its code: it has done nothing of that. `ERR` is also what a proxy says that has
 * lost its server, and how older servers begin the error of a script.
 */
const undone = /^(?!ERR )[A-Z]+ |\bREADONLY /

/**
 * Null for an error that is no answer. A server that accepts no writes still reads, and one that finds a foreign value under one key still
 * counts under others.
 */
function answerOf (error: unknown): StoreDownError | null {
  const { name, message } = Object(error)
  return name === 'ReplyError' ? new StoreDownError('failed', { asked: !undone.test(message), cause: error }) : null
}

const digests = new Map(Object.entries(scripts).map(([name, text]) => [name, hash('sha1', text, 'hex')]))

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
