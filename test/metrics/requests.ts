/** Settled requests as the pipeline leaves them, for tests of whoever reads them at the end. */
import { endpoints, type Endpoint } from '../../plugins/protocols/index.js'
import { ModelCall } from '../../plugins/core/call/model-call.js'
import type { Group, TokenUsage } from '../../plugins/core/types.js'
import { fillCall, type CallFields } from '../helpers/call-fields.js'

export const noTokens: TokenUsage = {
  input: 0, cache_read: 0, cache_write_5m: 0, cache_write_1h: 0, cache_write: 0, tool_input: 0, output: 0, reasoning: 0,
}

export function endpointOf (id: string): Endpoint {
  const endpoint = endpoints.find((candidate) => candidate.id === id)
  if (endpoint === undefined) throw new Error(`no endpoint ${id}`)
  return endpoint
}

export function groupOf (id: string): Group {
  return {
    id, protocols: new Set(), thirdParty: true, upstream: null, models: null, limits: {}, onStoreFailure: 'closed',
  }
}

type Fields = Omit<CallFields, 'endpoint'> & { readonly at?: Times, readonly endpoint?: string }

/** Milliseconds after the start. */
interface Times {
  readonly bodyStarted?: number
  readonly body?: number
  readonly sent?: number
  readonly headers?: number
  readonly firstChunk?: number
  readonly lastChunk?: number
  readonly ended?: number
}

/** A request that went well in one second, changed by `fields`. */
export function settledRequest ({ at = {}, endpoint = 'chat_completions', ...fields }: Fields = {}): ModelCall {
  const llm = new ModelCall({
    kind: 'endpoint', endpoint: endpointOf(endpoint), url: '/v1/chat/completions', model: 'gpt-5', mountLength: 0, repair: null, keys: null,
  })
  const after = (ms: number): number => ms === 0 ? 0 : llm.startedAt + ms
  fillCall(llm, {
    auth: { group: groupOf('chat') }, routing: { upstream: 'main' }, upstreamReply: { status: 200 }, status: 200, outcome: 'ok',
  })
  fillCall(llm, fields)
  llm.times.bodyStartedAt = after(at.bodyStarted ?? 1)
  llm.times.bodyAt = after(at.body ?? 11)
  llm.times.sentAt = after(at.sent ?? 12)
  llm.times.headersAt = after(at.headers ?? 300)
  llm.times.firstChunkAt = after(at.firstChunk ?? 400)
  llm.times.lastChunkAt = after(at.lastChunk ?? 900)
  llm.times.endedAt = after(at.ended ?? 1_000)
  return llm
}
