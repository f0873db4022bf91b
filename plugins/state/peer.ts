/** Optional packages, loaded when an option needs them. */
import { MissingPeerError } from '../core/config/options.js'
import type { StateConfig } from './types.js'

export const loadLmdb = async () => await loadPeer('state.engine lmdb', 'lmdb', async () => await import('lmdb'))
export const loadRedis = async () => await loadPeer('state.engine redis', 'ioredis', async () => await import('ioredis'))

export const loadPostgres = async () => await loadPeer('state.usageStore', 'pg', async () => await import('pg'))

/** `LLM_GATEWAY_MISSING_PEER` errors, one for each package that the state needs and that is not installed. */
export async function missingPeers ({ engine, usageStore }: Pick<StateConfig, 'engine' | 'usageStore'>): Promise<unknown[]> {
  const needed = [...engine === 'lmdb' ? [loadLmdb] : [], ...engine === 'redis' ? [loadRedis] : [], ...usageStore ? [loadPostgres] : []]
  const loaded = await Promise.allSettled(needed.map((load) => load()))
  return loaded.flatMap((result) => result.status === 'rejected' ? [result.reason] : [])
}

/** Throws `LLM_GATEWAY_MISSING_PEER`, naming the feature and the package, if it is not installed. */
export async function loadPeer<T> (feature: string, name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load()
  } catch {
    throw new MissingPeerError(feature, name)
  }
}
