import type { IncomingHttpHeaders } from 'node:http'
import type { ModelCall } from '../core/call/model-call.js'
import type { Tie } from './affinity.js'
import { conversationOf } from './conversation.js'
import type { Pool } from './pool.js'
import { textHash } from './rendezvous.js'

/** What ties a request to a member of a pool. With the id of its key, so that two callers who chose the same words are not one. */
export function tieOf ({ affinity, members }: Pool, { auth, body }: ModelCall, headers: IncomingHttpHeaders): Tie | null {
  if (affinity === 'none' || members.length === 1) return null
  const conversation = affinity === 'key' ? null : conversationOf(headers, body.json)
  return { hash: textHash(auth.key?.id ?? '', '\n', conversation ?? ''), stays: conversation !== null }
}
