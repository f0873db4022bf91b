import { openaiCounts, openaiReply, openaiServed } from '../openai-rules.js'
import { plainCount } from '../served-rules.js'
import type { UsageRules } from '../usage-rules.js'

export const imagesUsage: UsageRules = {
  ...openaiReply,
  usage: ['usage'],
  // The model that wrote an SVG is another one than the image model.
  tools: ['svg_usage'],
  // Images, for models that are charged by the piece.
  served: { ...openaiServed, counts: [{ ...plainCount, unit: 'image', reply: ['data.#'] }] },
  merge: 'sum',
  ending: { types: ['image_generation.completed', 'image_edit.completed'], reasons: [], arrays: false },
  counts: { ...openaiCounts, outputKind: 'image' },
}
