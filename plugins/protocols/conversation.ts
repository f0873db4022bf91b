/**
 * Fields by which agents' clients identify a conversation, best first: headers, then fields of the body. Fields that identify the person
 * instead (`user`, `safety_identifier`) are left out, and so is what may change with each turn: even the first lines of a prompt may hold a
 * new number each time.
 */
export interface ConversationField {
  readonly in: 'header' | 'body'
  /** Keys on the path to it. The last key may be inside a JSON text in the body: `metadata.user_id` of Claude Code is one. */
  readonly path: readonly string[]
  /** The part of the text that identifies the conversation, if it is not the whole. */
  readonly part?: RegExp
}

export const conversationFields: readonly ConversationField[] = [
  { in: 'header', path: ['x-claude-code-session-id'] },
  { in: 'body', path: ['metadata', 'user_id'], part: /(?:"session_id"\s*:\s*"|_session_)([A-Za-z0-9_-]{8,128})/ },
  { in: 'header', path: ['session-id'] },
  { in: 'header', path: ['session_id'] },
  { in: 'header', path: ['x-session-id'] },
  { in: 'header', path: ['x-session-affinity'] },
  { in: 'body', path: ['prompt_cache_key'] },
  { in: 'body', path: ['previous_response_id'] },
]

/** A conversation that the provider holds for an account, and may forget at any time: any other account answers as if it had. */
export interface HeldConversation {
  /** Path in the body to the id of the reply that the request continues. */
  readonly id: readonly string[]
  /** Path to a text that is there if the reply to the request can be continued. */
  readonly sign: readonly string[]
}
