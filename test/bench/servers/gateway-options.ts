/** The gateway as it is measured: every part on, one group, keys from a table behind the cache. */
import { Registry } from 'prom-client'
import type { LlmGatewayOptions } from '../../../plugins/index.js'
import { callerKey, upstreamKey } from '../work.js'
import { settings } from './serve.js'

export const registry = new Registry()

const plenty = 1_000_000_000_000

export function gatewayOptions (): LlmGatewayOptions {
  return {
    upstreams: { main: { url: settings.upstream, credential: upstreamKey } },
    groups: {
      bench: {
        protocols: ['chat_completions', 'responses', 'images', 'embeddings'],
        upstream: 'main',
        limits: { requestsPerMinute: plenty, tokensPerMinute: plenty, concurrency: plenty, balance: plenty },
      },
    },
    lookup: async credential => credential === callerKey ? { id: 'bench', group: 'bench' } : null,
    metrics: { registry },
  }
}
