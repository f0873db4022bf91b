import { openaiCounts, openaiReply, openaiServed } from '../openai-rules.js'
import { plainCount } from '../served-rules.js'
import type { UsageRules } from '../usage-rules.js'

export const imagesUsage: UsageRules = {
  ...openaiReply,
  usage: ['usage'],
  // Who wrote an SVG is another one than who drew it.
  tools: ['svg_usage'],
  // Pictures, for models that are paid by the piece.
  served: { ...openaiServed, counts: [{ ...plainCount, unit: 'image', reply: ['data.#'] }] },
  merge: 'sum',
  ending: { types: ['image_generation.completed', 'image_edit.completed'], reasons: [], arrays: false },
  counts: { ...openaiCounts, outputKind: 'image' },
}
