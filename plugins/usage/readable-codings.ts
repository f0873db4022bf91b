import type { IncomingHttpHeaders } from 'node:http'
import { codings } from './decoder.js'

/** Matches a list of codings that can be decoded. Each round consumes a name, so that matching is linear. */
const readable = new RegExp(`^(?:\\s*(?:${[...codings.keys(), 'identity'].join('|')})\\s*(?:;[^,]*)?(?:,|$))+$`, 'i')

/**
 * Reduces the codings that a caller accepts to those that can be decoded here: in any other, the reply would be paid for and not
 * counted. `*` counts as another one. Older Nodes have no zstd, which agents name and providers use.
 */
export function acceptReadable (headers: IncomingHttpHeaders): void {
  const accepted = headers['accept-encoding']
  if (accepted === undefined || readable.test(accepted)) return
  headers['accept-encoding'] = accepted.split(',').filter((coding) => readable.test(coding)).join(',') || 'identity'
}
