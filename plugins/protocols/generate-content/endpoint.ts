import { defineEndpoints } from '../endpoint.js'
import { gemini } from '../family-gemini.js'
import { generateContentUsage } from '../usage-rules.js'

// Both spellings are valid at each level.
const output = {
  max: [['generationConfig', 'maxOutputTokens'], ['generation_config', 'max_output_tokens'], ['generationConfig', 'max_output_tokens'], ['generation_config', 'maxOutputTokens']],
  choices: [['generationConfig', 'candidateCount'], ['generation_config', 'candidate_count'], ['generationConfig', 'candidate_count'], ['generation_config', 'candidateCount']],
}

/**
 * https://ai.google.dev/api/generate-content
 * The model stands in the path before the last colon, under `models/` or `tunedModels/`, and may hold `/`, `:` and `@`.
 */
const actions = [
  { action: 'generateContent', schema: 'generate-content', metered: 'yes', usage: generateContentUsage, output },
  { action: 'streamGenerateContent', schema: 'generate-content', metered: 'yes', streams: 'path', usage: generateContentUsage, output },
  { action: 'countTokens', schema: 'generate-content.count_tokens', otherModels: ['model', 'generateContentRequest.model', 'generate_content_request.model'] },
  { action: 'embedContent', schema: 'generate-content.embed', metered: 'optional', operation: 'embeddings', usage: generateContentUsage },
  {
    action: 'batchEmbedContents',
    schema: 'generate-content.batch_embed',
    metered: 'optional',
    operation: 'embeddings',
    usage: generateContentUsage,
    otherModels: ['model', 'requests.*.model'],
  },
] as const

export const generateContent = defineEndpoints(
  { protocol: 'generate_content', family: gemini, operation: 'generate_content', allowedBy: ['generate_content'] },
  actions.flatMap((rules) => [
    { id: `generate_content.${rules.action}`, path: 'models/:model', otherModels: ['model'], ...rules },
    { id: `generate_content.tuned.${rules.action}`, path: 'tunedModels/:model', otherModels: ['model'], ...rules },
  ]))
