import type { IncomingHttpHeaders } from 'node:http'
import { valueAt } from '../core/body/json-object.js'
import type { ModelCall } from '../core/call/model-call.js'
import { conversationFields, type ConversationField } from '../protocols/conversation.js'
import type { AffinityKey } from './affinity.js'
import type { Pool } from './pool.js'
import { textHash } from './rendezvous.js'

/** Longer texts are no ids. */
const maxLength = 255

/** What ties a request to a member of its pool, null for nothing. Includes the key's id: two callers may use the same conversation id. */
export function affinityKeyOf ({ affinity, members }: Pool, { auth, body }: ModelCall, headers: IncomingHttpHeaders): AffinityKey | null {
  if (affinity === 'none' || members.length === 1) return null
  const conversation = affinity === 'key' ? null : conversationOf(headers, body.json)
  return { hash: textHash(auth.key?.id ?? '', '\n', conversation ?? ''), stays: conversation !== null }
}

/** The id of a request's conversation, from the first of the known fields that has one; null for none. `json`: its parsed body. */
export function conversationOf (headers: Readonly<Record<string, unknown>>, json: unknown): string | null {
  for (const field of conversationFields) {
    const id = field.in === 'header' ? headers[String(field.path[0])] : bodyText(json, field)
    if (typeof id === 'string' && id !== '' && id.length <= maxLength) return id
  }
  return null
}

function bodyText (json: unknown, { path, part }: ConversationField): string | undefined {
  const value = valueAt(json, path)
  if (typeof value !== 'string') return undefined
  return part === undefined ? value : part.exec(value.slice(0, 4_096))?.[1]
}
