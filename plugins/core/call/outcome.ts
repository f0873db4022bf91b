import type { ModelCall } from './model-call.js'
import type { Outcome } from '../types.js'

/** Nothing is done at this address, as where nobody listens. */
export const redirections: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])
/** The provider refuses the gateway's credential or account. */
const unpaid: ReadonlySet<number> = new Set([401, 402])

/** No fault of the caller. */
function isUpstreamsFault ({ upstreamReply: { status }, auth: { key }, routing }: ModelCall): boolean {
  if (status >= 500 || redirections.has(status)) return true
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
