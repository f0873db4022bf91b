import type { IncomingHttpHeaders } from 'node:http'
import { codings } from './decoder.js'

/** A list of codings that replies are read in. Each round takes a name, so that no header is looked at twice. */
const readable = new RegExp(`^(?:\\s*(?:${[...codings.keys(), 'identity'].join('|')})\\s*(?:;[^,]*)?(?:,|$))+$`, 'i')

/**
 * Leaves of what a caller accepts the codings that its reply can be read in: it would be paid for and not counted in any
 * other. `*` is any other. An older Node has no zstd, which agents name and providers answer in.
 */
export function acceptReadable (headers: IncomingHttpHeaders): void {
  const accepted = headers['accept-encoding']
  if (accepted === undefined || readable.test(accepted)) return
  headers['accept-encoding'] = accepted.split(',').filter((coding) => readable.test(coding)).join(',') || 'identity'
}
