import { valueAt } from '../core/body/json-object.js'
import { conversationFields, type ConversationField } from '../protocols/conversation.js'

/** Longer texts are no ids. */
const maxLength = 255

/**
 * The id of a request's conversation, from the first of the known fields that has one; null for none. `json`: its parsed body.
 */
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
