import {
  countTokens, field, pieces, reasoningTokens, signature, text, type Ask, type SimulatedEvent, type Simulation,
} from '../simulate-text.js'

function usage (ask: Ask): Record<string, unknown> {
  const input = countTokens(field(ask.body, 'input'))
  const output = pieces.length + reasoningTokens
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoningTokens },
    total_tokens: input + output,
  }
}

function part (content: string): Record<string, unknown> {
  return { type: 'output_text', text: content, annotations: [], logprobs: [] }
}

function message (ask: Ask, status: string, content: readonly object[]): Record<string, unknown> {
  return { id: `msg_${ask.id}`, type: 'message', status, role: 'assistant', content }
}

function response (ask: Ask, status: string): Record<string, unknown> {
  const done = status === 'completed'
  return {
    id: ask.named ?? `resp_${ask.id}`,
    object: 'response',
    created_at: ask.createdAt,
    completed_at: done ? ask.createdAt : null,
    status,
    background: false,
    error: null,
    incomplete_details: null,
    instructions: field(ask.body, 'instructions') ?? null,
    max_output_tokens: null,
    metadata: {},
    model: ask.model,
    output: done ? [message(ask, 'completed', [part(text)])] : [],
    parallel_tool_calls: true,
    previous_response_id: null,
    reasoning: { effort: 'low', summary: null },
    service_tier: 'default',
    store: true,
    temperature: 1,
    text: { format: { type: 'text' } },
    tool_choice: 'auto',
    tools: [],
    top_p: 1,
    truncation: 'disabled',
    usage: done ? usage(ask) : null,
  }
}

function events (ask: Ask): readonly SimulatedEvent[] {
  const at = { item_id: `msg_${ask.id}`, output_index: 0, content_index: 0 }
  const typed: ReadonlyArray<readonly [type: string, fields: object]> = [
    ['response.created', { response: response(ask, 'in_progress') }],
    ['response.in_progress', { response: response(ask, 'in_progress') }],
    ['response.output_item.added', { output_index: 0, item: message(ask, 'in_progress', []) }],
    ['response.content_part.added', { ...at, part: part('') }],
    ...pieces.map((delta) => ['response.output_text.delta', { ...at, delta, logprobs: [] }] as const),
    ['response.output_text.done', { ...at, text, logprobs: [] }],
    ['response.content_part.done', { ...at, part: part(text) }],
    ['response.output_item.done', { output_index: 0, item: message(ask, 'completed', [part(text)]) }],
    ['response.completed', { response: response(ask, 'completed') }],
  ]
  return typed.map(([type, fields], index) => ({ event: type, data: { type, sequence_number: index, ...fields } }))
}

/** The number of an event is its position. */
function eventsAgain (ask: Ask): readonly SimulatedEvent[] {
  const after = field(ask.body, 'starting_after')
  return after === undefined ? events(ask) : events(ask).slice(Math.max(0, Number(after) + 1))
}

export const simulateResponses: Readonly<Record<string, Simulation>> = {
  responses: { reply: (ask) => response(ask, 'completed'), events },
  'responses.compact': {
    reply: (ask) => ({
      id: `resp_${ask.id}`,
      object: 'response.compaction',
      created_at: ask.createdAt,
      output: [{ id: `cmp_${ask.id}`, type: 'compaction', encrypted_content: signature }],
      usage: usage(ask),
    }),
  },
  'responses.input_tokens': {
    reply: (ask) => ({ object: 'response.input_tokens', input_tokens: countTokens(field(ask.body, 'input')) }),
  },
  'responses.cancel': { reply: (ask) => response(ask, 'cancelled') },
  'responses.input_items': { reply: () => ({ object: 'list', data: [], first_id: null, last_id: null, has_more: false }) },
  'responses.retrieve': { reply: (ask) => response(ask, 'completed'), events: eventsAgain },
  'responses.delete': { reply: (ask) => ({ id: ask.named, object: 'response', deleted: true }) },
}
