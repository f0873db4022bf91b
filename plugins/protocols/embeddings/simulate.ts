import { countTokens, field, vector, wholeNumber, type Ask, type Simulation } from '../simulate-text.js'

/** One vector for each text, or for each list of token numbers. The official client asks for base64 by itself. */
function reply (ask: Ask): Record<string, unknown> {
  const input = field(ask.body, 'input')
  const inputs = Array.isArray(input) && typeof input[0] !== 'number' ? input.length : 1
  const values = vector(wholeNumber(field(ask.body, 'dimensions'), 8, 4096))
  const embedding = field(ask.body, 'encoding_format') === 'base64'
    ? Buffer.from(Float32Array.from(values).buffer).toString('base64')
    : values
  const tokens = countTokens(input)
  return {
    object: 'list',
    data: Array.from({ length: inputs }, (_, index) => ({ object: 'embedding', index, embedding })),
    model: ask.model,
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  }
}

export const simulateEmbeddings: Readonly<Record<string, Simulation>> = { embeddings: { reply } }
