import type { IncomingHttpHeaders } from 'node:http'
import type { ModelCall } from '../core/call/model-call.js'
import type { AffinityKey } from './affinity.js'
import { conversationOf } from './conversation.js'
import type { Pool } from './pool.js'
import { textHash } from './rendezvous.js'

/** What ties a request to a member of its pool, null for nothing. Includes the key's id: two callers may use the same conversation id. */
export function affinityKeyOf ({ affinity, members }: Pool, { auth, body }: ModelCall, headers: IncomingHttpHeaders): AffinityKey | null {
  if (affinity === 'none' || members.length === 1) return null
  const conversation = affinity === 'key' ? null : conversationOf(headers, body.json)
  return { hash: textHash(auth.key?.id ?? '', '\n', conversation ?? ''), stays: conversation !== null }
}
