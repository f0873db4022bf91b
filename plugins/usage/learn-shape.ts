import { tell, type Told } from './count-tokens.js'
import { JsonScanner } from './json-scanner.js'
import { textIn } from './meter.js'
import type { Plan } from './plan.js'
import { ReplyShape, type TextMark } from './reply-shape.js'
import { isObject, type JsonObject } from './usage-object.js'

/** A key, or a text or number that may differ in the next reply. */
const tokens = /("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?|-?\d[\d.eE+-]*/gs
/** Words of the protocol, such as `STOP` or `TEXT`, are part of the shape. */
const word = /^"[A-Z][A-Z_]*"$/

// What may stand where a value was. Each ends where the shape goes on, so that a match never tries a second way.
const anyText = '([^"\\\\]*(?:\\\\.[^"\\\\]*)*)'
const anyNumber = '(-?\\d[\\d.eE+-]*)'
// Within the usage object, which the scanner parses: what is no JSON there takes the whole object away.
const plainText = '([ !#-\\[\\]-~]*)'
const jsonNumber = '(-?(?:0|[1-9]\\d*)(?:\\.\\d+)?(?:[eE][+-]?\\d+)?)'
/** A text that is told: it stands for itself, and an empty one tells nothing. */
const toldText = '([ !#-\\[\\]-~]+)'
/** A count: small enough to be exact. */
const count = '(0|[1-9]\\d{0,14})'

/** A reply without the values that may differ: a piece before each, and one after the last. */
interface Apart {
  readonly pieces: readonly string[]
  readonly holes: readonly ('text' | 'number')[]
}

/**
 * The shape of a whole reply, null where it tells no usage or more than one match can read. To find out which value means
 * what, the reply is read with the scanner as any other, once, with the number of each value in its place.
 */
export function learnShape (reply: Buffer, plan: Plan): ReplyShape | null {
  const apart = takeApart(reply.toString('latin1'))
  const numbered = Buffer.from(apart.pieces.map((piece, index) => piece + numberOf(apart, index)).join(''), 'latin1')
  const scanner = new JsonScanner(plan.wants)
  const end = scanner.push(numbered, 0, numbered.length)
  if (numbered.toString('latin1', end).trim() !== '') return null
  const usage = onlyUsage(scanner.found, plan)
  const told = usage === null ? null : tell(usage, plan.counts)
  if (usage === null || told === null || !namesItsKinds(told)) return null
  return shapeOf(apart, scanner.found, usage, told, plan)
}

function takeApart (text: string): Apart {
  const pieces: string[] = []
  const holes: Array<'text' | 'number'> = []
  let from = 0
  for (const { 0: token, 1: quoted, 2: colon, index } of text.matchAll(tokens)) {
    if (colon !== undefined || word.test(token)) continue
    const edge = quoted === undefined ? 0 : 1
    pieces.push(text.slice(from, index + edge))
    holes.push(quoted === undefined ? 'number' : 'text')
    from = index + token.length - edge
  }
  return { pieces: [...pieces, text.slice(from)], holes }
}

/** The value itself replaced by its number, counted from 1. */
function numberOf ({ holes }: Apart, index: number): string {
  return holes[index] === undefined ? '' : holes[index] === 'text' ? `#${index + 1}` : String(index + 1)
}

/** Null where several objects make the usage of the reply. */
function onlyUsage (found: readonly unknown[], { slots, counts }: Plan): JsonObject | null {
  const [usage, ...others] = [...slots.usage, ...slots.tools].map((slot) => found[slot]).filter(isObject)
  if (usage === undefined || others.length > 0) return null
  return counts.added !== null && usage[counts.added.list] !== undefined ? null : usage
}

/** False where the kinds of content are values themselves. */
function namesItsKinds ({ kinds }: Told): boolean {
  return kinds.every(({ modality }) => !modality.startsWith('#'))
}

function shapeOf (apart: Apart, found: readonly unknown[], usage: JsonObject, told: Told, { slots, counts }: Plan): ReplyShape {
  const marks = { model: markIn(found, slots.model), id: markIn(found, slots.id), finish: markIn(found, slots.finish), told, usage }
  const groups = {
    told: new Set<unknown>([marks.model, marks.id, marks.finish].map(({ group }) => group)),
    counted: new Set<unknown>([...Object.values(told.numbers), told.total, ...told.kinds.map(({ tokens }) => tokens)]),
    usage: new Set(groupsIn(usage)),
  }
  const patternOf = (kind: 'text' | 'number', group: number): string => {
    if (kind === 'text') return groups.told.has(group) ? toldText : groups.usage.has(group) ? plainText : anyText
    return groups.counted.has(group) ? count : groups.usage.has(group) ? jsonNumber : anyNumber
  }
  const source = apart.pieces.map((piece, index) => {
    const kind = apart.holes[index]
    return escaped(piece) + (kind === undefined ? '' : patternOf(kind, index + 1))
  })
  return new ReplyShape(new RegExp(`^${source.join('')}$`, 's'), marks, counts)
}

/** The numbers of all values within a value. */
function groupsIn (value: unknown): number[] {
  if (typeof value === 'number') return [value]
  if (typeof value === 'string') return value.startsWith('#') ? [Number(value.slice(1))] : []
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(groupsIn) : []
}

function markIn (found: readonly unknown[], slots: readonly number[]): TextMark {
  const text = textIn(found, slots)
  return text?.startsWith('#') === true ? { group: Number(text.slice(1)), text: null } : { group: 0, text }
}

function escaped (piece: string): string {
  return piece.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
}
