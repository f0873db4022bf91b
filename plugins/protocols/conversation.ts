/**
 * What clients of agents send along that tells one conversation from another, best first: headers, then fields of the body. A
 * field that tells the person instead (`user`, `safety_identifier`) is left out, and so is what changes with each turn: the
 * first lines of a prompt may hold a number that is new each time.
 */
export interface ConversationField {
  readonly in: 'header' | 'body'
  /** Keys on the way to it. The last of a body's may stand within a JSON text: `metadata.user_id` of Claude Code is one. */
  readonly path: readonly string[]
  /** The part of a text that tells the conversation, where that is not all of it. */
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
