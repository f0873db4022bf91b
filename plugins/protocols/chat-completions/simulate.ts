import { countTokens, field, pieces, text, type Ask, type SimulatedEvent, type Simulation } from '../simulate-text.js'

function usage (ask: Ask): Record<string, unknown> {
  const prompt = countTokens(field(ask.body, 'messages'))
  return {
    prompt_tokens: prompt,
    completion_tokens: pieces.length,
    total_tokens: prompt + pieces.length,
    prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 },
  }
}

function frame (ask: Ask, object: string): Record<string, unknown> {
  return { id: `chatcmpl-${ask.id}`, object, created: ask.createdAt, model: ask.model, service_tier: 'default' }
}

function reply (ask: Ask): Record<string, unknown> {
  const message = { role: 'assistant', content: text, refusal: null, annotations: [] }
  return {
    ...frame(ask, 'chat.completion'),
    choices: [{ index: 0, message, logprobs: null, finish_reason: 'stop' }],
    usage: usage(ask),
  }
}

/** Usage only if it was asked for; then every other chunk has `usage: null`. */
function events (ask: Ask): readonly SimulatedEvent[] {
  const asked = field(ask.body, 'stream_options', 'include_usage') === true
  const head = { ...frame(ask, 'chat.completion.chunk'), ...asked && { usage: null } }
  const chunk = (delta: object, finishReason: string | null): SimulatedEvent =>
    ({ data: { ...head, choices: [{ index: 0, delta, logprobs: null, finish_reason: finishReason }] } })
  return [
    chunk({ role: 'assistant', content: '', refusal: null }, null),
    ...pieces.map((content) => chunk({ content }, null)),
    chunk({}, 'stop'),
    ...asked ? [{ data: { ...head, choices: [], usage: usage(ask) } }] : [],
    { data: '[DONE]' },
  ]
}

export const simulateChatCompletions: Readonly<Record<string, Simulation>> = { chat_completions: { reply, events } }
