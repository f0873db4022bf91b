import { openaiReply } from '../openai-rules.js'
import type { UsageRules } from '../usage-rules.js'

export const chatUsage: UsageRules = {
  ...openaiReply,
  // Moonshot's is inside of the choice that ends.
  usage: ['choices.*.usage', 'x_groq.usage', 'usage'],
  // Groq, OpenRouter; MiniMax has 0 there in a reply of success.
  errors: [...openaiReply.errors, 'x_groq.error', 'choices.*.error', 'base_resp.status_code'],
  // Reasoning is the larger part of the billed output (https://discuss.ai.google.dev/t/127400).
  counts: { ...openaiReply.counts, reasoningInTotal: /^(?:[^]*\/)?gemini-/ },
  request: { field: 'stream_options', flag: 'include_usage', emptyList: 'choices' },
  head: { preamble: [], isEmpty: ({ choices }) => listOf(choices).every(isEmptyChoice) },
}

/** A role without text: many providers send it before they have asked the model. */
function isEmptyChoice (choice: unknown): boolean {
  const { delta, finish_reason: finish } = fieldsOf(choice)
  return (finish === undefined || finish === null) && Object.entries(fieldsOf(delta))
    .every(([name, value]) => name === 'role' || isNothing(value))
}

function fieldsOf (value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && !Array.isArray(value) ? { ...value } : {}
}

function isNothing (value: unknown): boolean {
  return value === null || value === '' || (Array.isArray(value) && value.length === 0)
}

function listOf (value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
