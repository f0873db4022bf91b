/** Optional packages, loaded when something is configured that needs them. */
import { MissingPeerError } from '../core/options.js'
import type { StateConfig } from './types.js'

export const loadLmdb = async () => await loadPeer('state.engine lmdb', 'lmdb', async () => await import('lmdb'))
export const loadRedis = async () => await loadPeer('state.engine redis', 'ioredis', async () => await import('ioredis'))

export const loadPostgres = async () => await loadPeer('state.usageStore', 'pg', async () => await import('pg'))

/** Throws `LLM_GATEWAY_MISSING_PEER` where a package is not installed that the state needs. */
export async function checkPeers ({ engine, usageStore }: Pick<StateConfig, 'engine' | 'usageStore'>): Promise<void> {
  if (engine === 'lmdb') await loadLmdb()
  if (engine === 'redis') await loadRedis()
  if (usageStore !== undefined) await loadPostgres()
}

/** Throws `LLM_GATEWAY_MISSING_PEER`, naming both. */
export async function loadPeer<T> (feature: string, name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load()
  } catch {
    throw new MissingPeerError(feature, name)
  }
}
