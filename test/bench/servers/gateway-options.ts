/** The gateway as it is measured: every part on, one group, keys from a table behind the cache, the metrics as text of its own. */
import type { GroupOptions, LlmGatewayOptions } from '../../../plugins/index.js'
import { callerKey, upstreamKey } from '../work.js'
import { otherKey } from './other-keys.js'
import { settings } from './serve.js'

/** A table of that many other keys, so that the caller's is one among them. */
const groupCount = Number(process.env['BENCH_GROUPS'] ?? 0)
const groupOf = (at: number): string => groupCount === 0 ? 'bench' : `group-${at % groupCount}`
const others = new Map(Array.from(
  { length: Number(process.env['BENCH_KEYS'] ?? 0) }, (_, at) => [otherKey(at), { id: `other-${at}`, group: groupOf(at) }]
))

const plenty = 1_000_000_000_000

/** So many calendars that each request is counted in. */
const zones = ['UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Tokyo']
const periods = ['hour', 'day', 'week', 'month'] as const
const budgets = Array.from({ length: Number(process.env['BENCH_BUDGETS'] ?? 0) }, (_, at) => {
  return { tokens: plenty, period: periods[at % periods.length] ?? 'day', timezone: zones[Math.floor(at / periods.length)] ?? 'UTC' }
})
const group: GroupOptions = {
  protocols: ['chat_completions', 'responses', 'images', 'embeddings'],
  upstream: 'main',
  limits: {
    requestsPerMinute: plenty, tokensPerMinute: plenty, concurrency: plenty, balance: plenty, ...budgets.length > 0 && { budgets },
  },
}

export function gatewayOptions (): LlmGatewayOptions {
  return {
    upstreams: { main: { url: settings.upstream, credential: upstreamKey } },
    groups: {
      ...Object.fromEntries(Array.from({ length: groupCount }, (_, at) => [groupOf(at), group])),
      bench: group,
    },
    lookup: async credential => credential === callerKey ? { id: 'bench', group: 'bench' } : others.get(credential) ?? null,
  }
}
