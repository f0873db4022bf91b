import { defineEndpoints } from '../endpoint.js'
import { openai } from '../family-openai.js'
import { embeddingsUsage } from '../usage-rules.js'

/** https://platform.openai.com/docs/api-reference/embeddings */
export const embeddings = defineEndpoints(
  { protocol: 'embeddings', family: openai, operation: 'embeddings', allowedBy: ['embeddings'] },
  [
    {
      id: 'embeddings',
      path: 'embeddings',
      schema: 'embeddings',
      metered: 'yes',
      modelField: 'model',
      usage: embeddingsUsage,
    },
  ])
