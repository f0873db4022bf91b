/**
 * The names of OpenTelemetry's GenAI conventions; the only place where they are written. The conventions are in development
 * (https://github.com/open-telemetry/semantic-conventions-genai): a test compares these with the constants of the published package, except
 * for those that are called next, which it does not have yet.
 */
export const attributes = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  requestModel: 'gen_ai.request.model',
  stream: 'gen_ai.request.stream',
  maxTokens: 'gen_ai.request.max_tokens',
  temperature: 'gen_ai.request.temperature',
  topP: 'gen_ai.request.top_p',
  topK: 'gen_ai.request.top_k',
  seed: 'gen_ai.request.seed',
  choiceCount: 'gen_ai.request.choice.count',
  responseId: 'gen_ai.response.id',
  responseModel: 'gen_ai.response.model',
  finishReasons: 'gen_ai.response.finish_reasons',
  timeToFirstChunk: 'gen_ai.response.time_to_first_chunk',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  cacheReadTokens: 'gen_ai.usage.cache_read.input_tokens',
  cacheWriteTokens: 'gen_ai.usage.cache_creation.input_tokens',
  reasoningTokens: 'gen_ai.usage.reasoning.output_tokens',
  inputMessages: 'gen_ai.input.messages',
  outputMessages: 'gen_ai.output.messages',
  tokenType: 'gen_ai.token.type',
  serverAddress: 'server.address',
  serverPort: 'server.port',
  errorType: 'error.type',
} as const

/** Attributes that only the next metrics have. */
export const nextAttributes = {
  modality: 'gen_ai.token.modality',
} as const

export const metricNames = {
  tokenUsage: 'gen_ai.client.token.usage',
  duration: 'gen_ai.client.operation.duration',
  timeToFirstChunk: 'gen_ai.client.operation.time_to_first_chunk',
} as const

/** As release 0.1.0 of the conventions names them, embeddings apart. Input includes cached tokens, output includes reasoning. */
export const nextMetrics = {
  duration: 'gen_ai.client.inference.duration',
  timeToFirstChunk: 'gen_ai.client.inference.time_to_first_chunk',
  inputTokens: 'gen_ai.client.inference.usage.input_tokens',
  outputTokens: 'gen_ai.client.inference.usage.output_tokens',
  cacheReadTokens: 'gen_ai.client.inference.usage.cache_read.input_tokens',
  cacheWriteTokens: 'gen_ai.client.inference.usage.cache_write.input_tokens',
  reasoningTokens: 'gen_ai.client.inference.usage.reasoning.output_tokens',
  inputPerOperation: 'gen_ai.client.inference.operation.input_tokens',
  outputPerOperation: 'gen_ai.client.inference.operation.output_tokens',
} as const

/** The only ones that the same release has for embeddings. */
export const nextEmbeddings = {
  duration: 'gen_ai.client.embeddings.duration',
  inputPerOperation: 'gen_ai.client.embeddings.operation.input_tokens',
} as const

/** Bounds that the conventions recommend: seconds of an operation, tokens of a reply. */
export const advisedBounds = {
  duration: [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92],
  tokens: [1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864],
}
