import type { ModelCall } from '../core/call/model-call.js'
import type { AttemptResult } from './judgement.js'

const byError: ReadonlyMap<string | null, AttemptResult> = new Map([
  ['upstream_timeout', 'timeout'], ['upstream_reset', 'reset'], ['upstream_aborted', 'reset'], ['upstream_invalid', 'invalid'],
  // Only a connection of ours is waited for before anything is sent.
  ['overloaded', 'queue'],
])

/** How the one attempt of a settled request ended, if there was nothing to choose. */
export function plainResult ({ upstreamReply: { status }, abortedBy, errorCode, routing: { forwardsSecret } }: ModelCall): AttemptResult {
  if (abortedBy === 'client') return 'left'
  if (status === 0) return byError.get(errorCode) ?? 'connect'
  if (abortedBy !== null) return byError.get(errorCode) ?? 'reset'
  if (status === 429) return 'rate_limited'
  if (status >= 500) return status === 503 || status === 529 ? 'overloaded' : 'server_error'
  if (status >= 401 && status <= 403 && !forwardsSecret) return 'credential'
  return status >= 400 ? 'client_error' : 'ok'
}
