import { defineProtocol } from '../endpoint.js'
import { gemini } from '../family-gemini.js'
import { settingAt } from './settings.js'
import { simulateGenerateContent } from './simulate.js'
import { generateContentText } from './text.js'
import { generateContentUsage } from './usage.js'

const searchTools = [
  'googleSearch', 'google_search', 'googleSearchRetrieval', 'google_search_retrieval', 'enterpriseWebSearch', 'enterprise_web_search',
  'googleMaps', 'google_maps',
]

const output = {
  max: settingAt('maxOutputTokens', 'max_output_tokens'),
  choices: settingAt('candidateCount', 'candidate_count'),
  tools: [{ unit: 'search', names: searchTools, most: null }],
} as const

/**
 * https://ai.google.dev/api/generate-content
 * The model is in the path before the last colon, under `models/` or `tunedModels/`, and may contain `/`, `:` and `@`.
 */
const actions = [
  { action: 'generateContent', schema: 'generate-content', metered: 'yes', usage: generateContentUsage, output },
  { action: 'streamGenerateContent', schema: 'generate-content', metered: 'yes', streams: 'path', usage: generateContentUsage, output },
  {
    action: 'countTokens',
    schema: 'generate-content.count_tokens',
    otherModels: ['model', 'generateContentRequest.model', 'generate_content_request.model'],
  },
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

export const generateContent = defineProtocol({
  name: 'generate_content',
  family: gemini,
  operation: 'generate_content',
  text: generateContentText,
  endpoints: actions.flatMap((rules) => [
    { id: `generate_content.${rules.action}`, path: 'models/:model', otherModels: ['model'], ...rules } as const,
    { id: `generate_content.tuned.${rules.action}`, path: 'tunedModels/:model', otherModels: ['model'], ...rules } as const,
  ]),
  example: {
    model: 'gemini-3.5-flash',
    path: (model) => `/v1beta/models/${model}:generateContent`,
    body: () => ({ contents: [{ role: 'user', parts: [{ text: 'Say hello' }] }] }),
  },
  simulations: simulateGenerateContent,
})
