import { countTokens, field, wholeNumber, type Ask, type SimulatedEvent, type Simulation } from '../simulate-text.js'
import { pictureOf } from './simulate-picture.js'

const tokensPerImage = 272

function usage (ask: Ask, images: number): Record<string, unknown> {
  const input = countTokens(field(ask.body, 'prompt'))
  const output = images * tokensPerImage
  return {
    total_tokens: input + output,
    input_tokens: input,
    output_tokens: output,
    input_tokens_details: { text_tokens: input, image_tokens: 0 },
    output_tokens_details: { text_tokens: 0, image_tokens: output },
  }
}

function format (ask: Ask, size: string): Record<string, unknown> {
  return {
    background: 'opaque',
    output_format: 'png',
    quality: field(ask.body, 'quality') ?? 'low',
    size,
  }
}

function reply (ask: Ask): Record<string, unknown> {
  const images = wholeNumber(field(ask.body, 'n'), 1, 10)
  const { size, base64 } = pictureOf(field(ask.body, 'size'))
  const data = Array.from({ length: images }, (_, index) =>
    ({ b64_json: base64, generation_id: `gen_${ask.id}_${index}`, model: ask.model, size }))
  return { created: ask.createdAt, ...format(ask, size), data, usage: usage(ask, images) }
}

function streamAs (name: string): (ask: Ask) => readonly SimulatedEvent[] {
  return (ask) => {
    const { size, base64 } = pictureOf(field(ask.body, 'size'))
    const image = { b64_json: base64, created_at: ask.createdAt, ...format(ask, size) }
    const partial = { type: `${name}.partial_image`, ...image, partial_image_index: 0 }
    const completed = { type: `${name}.completed`, ...image, usage: usage(ask, 1) }
    return [partial, completed].map((data) => ({ event: data.type, data }))
  }
}

export const simulateImages: Readonly<Record<string, Simulation>> = {
  images: { reply, events: streamAs('image_generation') },
  'images.edits': { reply, events: streamAs('image_edit') },
  'images.variations': { reply },
}
