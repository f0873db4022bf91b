import { defineEndpoints } from '../endpoint.js'
import { openai } from '../family-openai.js'
import { imagesUsage } from '../usage-rules.js'

const output = { max: [], choices: [['n']] }

/** https://platform.openai.com/docs/api-reference/images */
export const images = defineEndpoints(
  { protocol: 'images', family: openai, operation: 'image_generation', allowedBy: ['images'] },
  [
    {
      id: 'images',
      path: 'images/generations',
      schema: 'images',
      metered: 'yes',
      streams: 'body',
      modelField: 'model',
      usage: imagesUsage,
      output,
    },
    {
      id: 'images.edits',
      path: 'images/edits',
      body: 'form',
      schema: 'images.edits',
      metered: 'yes',
      streams: 'body',
      modelField: 'model',
      usage: imagesUsage,
      output,
    },
    {
      id: 'images.variations',
      path: 'images/variations',
      body: 'form',
      schema: 'images.variations',
      metered: 'optional',
      modelField: 'model',
      usage: imagesUsage,
      output,
    },
  ])
