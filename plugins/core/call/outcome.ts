import type { ModelCall } from './model-call.js'
import type { Outcome } from '../types.js'

/** Replies that are no fault of the caller: the provider has moved, or refuses the gateway's credential or account. */
const moved: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])
const unpaid: ReadonlySet<number> = new Set([401, 402])

function isUpstreamsFault ({ upstreamReply: { status }, auth: { key }, routing }: ModelCall): boolean {
  if (status >= 500 || moved.has(status)) return true
  // Without auth, the mount sends the caller's own key on.
  return unpaid.has(status) && key !== null && !routing.forwardsSecret
}

/** How a request ended, if no plugin has said so. */
export function outcomeOf (llm: ModelCall): Outcome {
  if (llm.abortedBy === 'client') return 'client_abort'
  if (llm.abortedBy !== null) return 'truncated'
  if (llm.usage.replyFailed || (llm.upstreamReply.status >= 300 && isUpstreamsFault(llm))) return 'upstream_error'
  if (llm.status >= 500) return 'gateway_error'
  if (llm.status >= 400) return 'client_error'
  return 'ok'
}
