import { createRequire } from 'node:module'
import type * as undici from 'undici'

type Parts = Pick<typeof undici, 'Agent' | 'errors' | 'util'>

/**
 * undici without fetch, WebSocket, cookies and cache, which take a tenth of every start: loaded from the files that the package's own index
 * uses, or from the whole package if those are missing.
 */
export function undiciParts (load: (name: string) => unknown): Parts {
  try {
    const api = load('undici/lib/api/index.js')
    const errors = load('undici/lib/core/errors.js')
    const util = load('undici/lib/core/util.js')
    const Agent = load('undici/lib/dispatcher/agent.js')
    // As the index does: `request` of an agent is there from then on.
    Object.assign(Object(load('undici/lib/dispatcher/dispatcher.js')).prototype, api)
    return Object({ Agent, errors, util })
  } catch {
    return Object(load('undici'))
  }
}

// An import would have Node search each file for the names that it exports.
export const { Agent: UpstreamAgent, errors, util } = undiciParts(createRequire(import.meta.url))
