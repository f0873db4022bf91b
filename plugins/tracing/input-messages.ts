/**
 * The messages of a request in the form of the GenAI conventions, `[{ role, parts: [{ type, content }] }]`. Only its texts: images, files
 * and tools appear with their type only.
 */
import { fieldOf } from '../core/body/json-object.js'
import type { TextRules } from '../protocols/text-rules.js'

export interface Part {
  readonly type: string
  readonly content?: string
}

export interface Message {
  readonly role: string
  readonly parts: readonly Part[]
}

/** Returns what is kept of a text: all, a part, or nothing. */
type Take = (text: string) => string

export function inputMessages (rules: TextRules | null, json: unknown, take: Take): Message[] {
  if (rules === null) return []
  const said = rules.input.map((name) => fieldOf(json, name)).find((value) => value !== undefined)
  return [said].flat().flatMap((item) => {
    const given = fieldOf(item, 'role')
    const role = typeof given === 'string' ? take(given) : 'user'
    const parts = partsOf(fieldOf(item, rules.parts) ?? item, take)
    return parts.length === 0 ? [] : [{ role, parts }]
  })
}

function partsOf (content: unknown, take: Take): Part[] {
  return [content].flat().flatMap((item) => {
    const text = typeof item === 'string' ? item : fieldOf(item, 'text')
    if (typeof text !== 'string') return partOfType(fieldOf(item, 'type'), take)
    const taken = take(text)
    return taken === '' ? [] : [{ type: 'text', content: taken }]
  })
}

function partOfType (type: unknown, take: Take): Part[] {
  if (typeof type !== 'string') return []
  const taken = take(type)
  return taken === '' ? [] : [{ type: taken }]
}
