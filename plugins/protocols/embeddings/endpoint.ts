import { defineProtocol, substituteModels } from '../endpoint.js'
import { openai } from '../family-openai.js'
import { simulateEmbeddings } from './simulate.js'
import { embeddingsText } from './text.js'
import { embeddingsUsage } from './usage.js'

/** https://platform.openai.com/docs/api-reference/embeddings */
export const embeddings = defineProtocol({
  name: 'embeddings',
  family: openai,
  operation: 'embeddings',
  text: embeddingsText,
  endpoints: [
    {
      id: 'embeddings',
      path: 'embeddings',
      schema: 'embeddings',
      metered: 'yes',
      modelField: 'model',
      otherModels: substituteModels,
      substitutes: substituteModels,
      usage: embeddingsUsage,
    },
  ],
  example: {
    model: 'text-embedding-3-small',
    path: () => '/v1/embeddings',
    body: (model) => ({ model, input: 'Say hello' }),
  },
  simulations: simulateEmbeddings,
})
