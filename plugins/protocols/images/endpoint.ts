import { defineProtocol, substituteModels } from '../endpoint.js'
import { openai } from '../family-openai.js'
import { simulateImages } from './simulate.js'
import { imagesText } from './text.js'
import { imagesUsage } from './usage.js'

const drawing = {
  modelField: 'model',
  /** An SVG may be drawn by another model. */
  otherModels: [...substituteModels, 'svg.model'],
  substitutes: substituteModels,
  usage: imagesUsage,
  output: { max: [], choices: [['n']] },
} as const

/** https://platform.openai.com/docs/api-reference/images */
export const images = defineProtocol({
  name: 'images',
  family: openai,
  operation: 'image_generation',
  text: imagesText,
  endpoints: [
    { id: 'images', path: 'images/generations', schema: 'images', metered: 'yes', streams: 'body', ...drawing },
    { id: 'images.edits', path: 'images/edits', body: 'form', schema: 'images.edits', metered: 'yes', streams: 'body', ...drawing },
    { id: 'images.variations', path: 'images/variations', body: 'form', schema: 'images.variations', metered: 'optional', ...drawing },
  ],
  example: {
    model: 'gpt-image-2',
    path: () => '/v1/images/generations',
    body: (model) => ({ model, prompt: 'A lighthouse at dawn', size: '1024x1024', quality: 'low' }),
  },
  simulations: simulateImages,
})
