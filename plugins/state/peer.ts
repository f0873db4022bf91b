import { MissingPeerError } from '../core/options.js'

/** Loads an optional package when something is configured that needs it. Throws `LLM_GATEWAY_MISSING_PEER`, naming both. */
export async function loadPeer<T> (feature: string, name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load()
  } catch {
    throw new MissingPeerError(feature, name)
  }
}
