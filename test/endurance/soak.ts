/** Everything at once for a long time: memory stays, and the tokens are those that the ledger has, at every end. */
import { reconciliation } from './reconciliation.js'
import type { Report } from './processes.js'

/** `perSecond`: requests that are begun at most, of all protocols, mixed with streams, faults and callers that leave. */
export async function soak ({
  minutes, perSecond, atOnce,
}: { readonly minutes: number, readonly perSecond: number, readonly atOnce: number }): Promise<Report> {
  const requests = Math.ceil(minutes * 60 * perSecond)
  return await reconciliation({ requests, atOnce, perSecond, forMs: minutes * 60_000 })
}
