import type { Cluster, Redis } from 'ioredis'
import { StoreDownError } from '../../core/balances/store-down.js'

export type Client = Redis | Cluster

/**
 * Returns what last went wrong with the connection; null while it is ready. Without a listener the client prints each error. The code is
 * preferred: a message contains the host, which is a piece of a password that was not encoded.
 */
export function heardBy (client: Client): () => Error | null {
  let last: Error | null = null
  client.on('error', (error: Error) => {
    // A cluster's says only that no node answered as it should.
    const cause: Error = Object(error).lastNodeError ?? error
    last = new Error(String(Reflect.get(cause, 'code') ?? sentinelWords(cause.message)))
  })
  client.on('ready', () => { last = null })
  return () => last
}

/** Rejects with StoreDownError if the connection is not ready within `startMs`. */
export async function ready (client: Client, startMs: number, trouble: () => Error | null): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new StoreDownError(`at state.url was not ready within ${startMs} ms: ${trouble()?.message ?? 'no answer'}`))
    }, startMs)
    client.once('ready', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}

/** The client's message about Sentinels contains their addresses. */
function sentinelWords (message: string): string {
  return message.replace(/^All sentinels.*Last error: (?:connect |getaddrinfo )?(ERR .*|\w+).*$/s, 'no Sentinel names the server: $1')
}
