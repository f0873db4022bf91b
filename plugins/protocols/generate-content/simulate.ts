import {
  countTokens, field, pieces, reasoningTokens, signature, text, vector, type Ask, type SimulatedEvent, type Simulation,
} from '../simulate-text.js'

function promptTokens (ask: Ask): number {
  return countTokens(field(ask.body, 'contents'))
}

/** A budget of 0 turns thinking off, in either spelling of proto JSON, as a number or a string. */
function thoughtTokens (ask: Ask): number {
  const budget = field(ask.body, 'generationConfig', 'thinkingConfig', 'thinkingBudget') ??
    field(ask.body, 'generation_config', 'thinking_config', 'thinking_budget')
  return String(budget) === '0' ? 0 : reasoningTokens
}

function chunk (ask: Ask, content: string, candidatesTokenCount: number, finishReason: string | null): Record<string, unknown> {
  const promptTokenCount = promptTokens(ask)
  const thoughtsTokenCount = thoughtTokens(ask)
  const last = finishReason !== null
  // The model's thoughts are returned, signed, with the last part.
  const part = { text: content, ...last && thoughtsTokenCount > 0 && { thoughtSignature: signature } }
  const candidate = { content: { parts: [part], role: 'model' }, index: 0 }
  return {
    candidates: [last ? { ...candidate, finishReason } : candidate],
    usageMetadata: {
      promptTokenCount,
      candidatesTokenCount,
      totalTokenCount: promptTokenCount + candidatesTokenCount + thoughtsTokenCount,
      promptTokensDetails: [{ modality: 'TEXT', tokenCount: promptTokenCount }],
      thoughtsTokenCount,
    },
    modelVersion: ask.model,
    responseId: ask.id,
  }
}

function reply (ask: Ask): Record<string, unknown> {
  return chunk(ask, text, pieces.length, 'STOP')
}

/** Every chunk has the usage so far. */
function events (ask: Ask): readonly SimulatedEvent[] {
  const last = pieces.length - 1
  return pieces.map((piece, index) => ({ data: chunk(ask, piece, index + 1, index === last ? 'STOP' : null) }))
}

function embedding (): Record<string, unknown> {
  return { values: vector(8) }
}

const actions: Readonly<Record<string, Simulation>> = {
  generateContent: { reply },
  streamGenerateContent: { reply, events },
  countTokens: {
    reply: (ask) => ({
      totalTokens: promptTokens(ask),
      promptTokensDetails: [{ modality: 'TEXT', tokenCount: promptTokens(ask) }],
    }),
  },
  embedContent: { reply: () => ({ embedding: embedding() }) },
  batchEmbedContents: {
    reply: (ask) => ({ embeddings: [field(ask.body, 'requests')].flat().map(embedding) }),
  },
}

export const simulateGenerateContent: Readonly<Record<string, Simulation>> = Object.fromEntries(
  Object.entries(actions).flatMap(([action, simulation]) => [
    [`generate_content.${action}`, simulation],
    [`generate_content.tuned.${action}`, simulation],
  ]))
