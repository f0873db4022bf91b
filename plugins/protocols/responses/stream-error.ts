import { openai } from '../family-openai.js'
import type { ErrorFacts, StreamFacts } from '../types.js'

/**
 * Agents show the message of `response.failed`. Typed clients require every field of a response, and the same id as before; clients that
 * know no failed response (Go) raise the `error` beside it.
 */
export function failedResponse (facts: ErrorFacts, stream: StreamFacts): string {
  const failed = {
    type: 'response.failed',
    sequence_number: stream.sequence === null ? 0 : stream.sequence + 1,
    response: {
      id: stream.id ?? facts.requestId,
      object: 'response',
      created_at: stream.createdAt ?? Math.floor(Date.now() / 1_000),
      status: 'failed',
      error: { code: facts.code, message: facts.message },
      incomplete_details: null,
      instructions: null,
      metadata: {},
      model: stream.model ?? '',
      output: [],
      parallel_tool_calls: true,
      temperature: null,
      tool_choice: 'auto',
      tools: [],
      top_p: null,
      usage: null,
    },
    ...openai.errorBody(facts),
  }
  return `event: response.failed\ndata: ${JSON.stringify(failed)}\n\n`
}
