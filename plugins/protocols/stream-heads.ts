/**
 * What stands at the head of a stream before its first content, and how a failure is told there: some providers answer 200 and
 * say only then that they are overloaded.
 */
import type { ProtocolLabel } from './types.js'

export type HeadEvent = 'preamble' | 'failed' | 'content'

type Document = Readonly<Record<string, unknown>>

interface HeadRules {
  /** Values of `type` of events that come before content. */
  readonly preamble: readonly string[]
  /** Values of `type` of events that tell of a failure. An `error` of its own does, too, whatever the type. */
  readonly failed: readonly string[]
  /** Events that have no `type`: true where they hold nothing yet. */
  readonly isEmpty: (document: Document) => boolean
}

const never = (): boolean => false

const rules: Partial<Record<ProtocolLabel, HeadRules>> = {
  chat_completions: { preamble: [], failed: ['error'], isEmpty: (document) => listOf(document['choices']).every(isEmptyChoice) },
  responses: {
    preamble: ['response.created', 'response.in_progress', 'response.queued', 'keepalive', 'ping'],
    failed: ['error', 'response.failed'],
    isEmpty: never,
  },
  messages: { preamble: ['message_start', 'ping'], failed: ['error'], isEmpty: never },
  generate_content: { preamble: [], failed: [], isEmpty: ({ candidates, promptFeedback }) => candidates === undefined && promptFeedback === undefined },
}

const others: HeadRules = { preamble: [], failed: ['error'], isEmpty: never }

/** What one event of a stream is, by its parsed data. */
export function headEventOf (protocol: ProtocolLabel, data: unknown): HeadEvent {
  const document = objectOf(data)
  if (document === null) return 'content'
  const { preamble, failed, isEmpty } = rules[protocol] ?? others
  const type = String(document['type'])
  if (objectOf(document['error']) !== null || failed.includes(type)) return 'failed'
  return preamble.includes(type) || isEmpty(document) ? 'preamble' : 'content'
}

/** A role without a word of its own: many providers send it before they have asked the model. */
function isEmptyChoice (choice: unknown): boolean {
  const { delta, finish_reason: finish } = objectOf(choice) ?? {}
  const parts = Object.entries(objectOf(delta) ?? {})
  return (finish === undefined || finish === null) && parts.every(([name, value]) => name === 'role' || value === null || value === '' || isEmptyList(value))
}

function isEmptyList (value: unknown): boolean {
  return Array.isArray(value) && value.length === 0
}

function listOf (value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function objectOf (value: unknown): Document | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : null
}
