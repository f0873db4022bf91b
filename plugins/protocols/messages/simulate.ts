import {
  countTokens, field, pieces, reasoningTokens, signature, text, type Ask, type SimulatedEvent, type Simulation,
} from '../simulate-text.js'

function inputTokens (ask: Ask): number {
  return countTokens(field(ask.body, 'messages'))
}

function thinks (ask: Ask): boolean {
  return ['enabled', 'adaptive'].includes(String(field(ask.body, 'thinking', 'type')))
}

/** Output tokens include thinking. */
function output (ask: Ask, visible: number): Record<string, unknown> {
  const thinking = thinks(ask) ? reasoningTokens : 0
  return { output_tokens: visible + thinking, output_tokens_details: { thinking_tokens: thinking } }
}

function usage (ask: Ask, outputTokens: Record<string, unknown>): Record<string, unknown> {
  return {
    input_tokens: inputTokens(ask),
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
    ...outputTokens,
    service_tier: 'standard',
    inference_geo: 'global',
  }
}

const noEdits = { applied_edits: [] }

function message (ask: Ask, own: object): Record<string, unknown> {
  return {
    id: `msg_${ask.id}`, type: 'message', role: 'assistant', model: ask.model, stop_sequence: null, stop_details: null, ...own,
  }
}

function textBlock (content: string): Record<string, unknown> {
  return { type: 'text', text: content, citations: [] }
}

/** Thoughts are signed and their text is empty, as if the caller had not asked to see them. */
function thinkingBlock (signed: string): Record<string, unknown> {
  return { type: 'thinking', thinking: '', signature: signed }
}

function reply (ask: Ask): Record<string, unknown> {
  return message(ask, {
    content: [...thinks(ask) ? [thinkingBlock(signature)] : [], textBlock(text)],
    stop_reason: 'end_turn',
    usage: usage(ask, output(ask, pieces.length)),
    context_management: noEdits,
  })
}

type Typed = Readonly<Record<string, unknown>> & { readonly type: string }

/** A block of the content, from its start to its stop event. */
function block (index: number, start: object, deltas: readonly object[]): readonly Typed[] {
  return [
    { type: 'content_block_start', index, content_block: start },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ]
}

/** Input tokens are in the first event, the final count of output tokens in the last but one. */
function events (ask: Ask): readonly SimulatedEvent[] {
  const begun = { content: [], stop_reason: null, usage: usage(ask, { output_tokens: 1 }), context_management: null }
  const thoughts = thinks(ask) ? block(0, thinkingBlock(''), [{ type: 'signature_delta', signature }]) : []
  const typed: readonly Typed[] = [
    { type: 'message_start', message: message(ask, begun) },
    { type: 'ping' },
    ...thoughts,
    ...block(thinks(ask) ? 1 : 0, textBlock(''), pieces.map((piece) => ({ type: 'text_delta', text: piece }))),
    {
      type: 'message_delta',
      delta: { stop_reason: 'end_turn', stop_sequence: null, stop_details: null },
      usage: output(ask, pieces.length),
      context_management: noEdits,
    },
    { type: 'message_stop' },
  ]
  return typed.map((data) => ({ event: data.type, data }))
}

export const simulateMessages: Readonly<Record<string, Simulation>> = {
  messages: { reply, events },
  'messages.count_tokens': { reply: (ask) => ({ input_tokens: inputTokens(ask) }) },
}
