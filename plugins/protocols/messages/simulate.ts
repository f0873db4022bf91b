import { countTokens, field, pieces, text, type Ask, type SimulatedEvent, type Simulation } from '../simulate-text.js'

function inputTokens (ask: Ask): number {
  return countTokens(field(ask.body, 'messages'))
}

function usage (ask: Ask, outputTokens: number): Record<string, unknown> {
  return {
    input_tokens: inputTokens(ask),
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
    output_tokens: outputTokens,
    service_tier: 'standard',
  }
}

function message (ask: Ask, own: object): Record<string, unknown> {
  return { id: `msg_${ask.id}`, type: 'message', role: 'assistant', model: ask.model, stop_sequence: null, ...own }
}

function reply (ask: Ask): Record<string, unknown> {
  return message(ask, { content: [{ type: 'text', text }], stop_reason: 'end_turn', usage: usage(ask, pieces.length) })
}

/** Input tokens stand in the first event, the last count of output tokens in the last but one. */
function events (ask: Ask): readonly SimulatedEvent[] {
  const typed: ReadonlyArray<Readonly<Record<string, unknown>> & { readonly type: string }> = [
    { type: 'message_start', message: message(ask, { content: [], stop_reason: null, usage: usage(ask, 1) }) },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'ping' },
    ...pieces.map((piece) => ({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: piece } })),
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: pieces.length } },
    { type: 'message_stop' },
  ]
  return typed.map((data) => ({ event: data.type, data }))
}

export const simulateMessages: Readonly<Record<string, Simulation>> = {
  messages: { reply, events },
  'messages.count_tokens': { reply: (ask) => ({ input_tokens: inputTokens(ask) }) },
}
