import { tell, type Told } from './count-tokens.js'
import { JsonScanner } from './json-scanner.js'
import { textIn } from './meter.js'
import type { Plan } from './plan.js'
import { ReplyShape, type Marks, type TextMark } from './reply-shape.js'
import { isObject, type JsonObject } from './usage-object.js'

/** A key, or a text or number that may differ in the next reply. */
const tokens = /("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?|-?\d[\d.eE+-]*/gs
/** Words of the protocol, such as `STOP` or `TEXT`, are part of the shape. */
const word = /^"[A-Z][A-Z_]*"$/

// What may stand where a value was. Each ends where the shape goes on, so that a match never tries a second way.
const anyText = '[^"\\\\]*(?:\\\\.[^"\\\\]*)*'
const anyNumber = '-?\\d[\\d.eE+-]*'
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
 * what, the reply is read with the scanner as any other, with the number of each value in its place; and once more with only
 * those numbered that are needed.
 */
export function learnShape (reply: Buffer, plan: Plan): ReplyShape | null {
  const apart = takeApart(reply.toString('latin1'))
  const all = marksIn(apart, apart.holes.map((_, index) => index + 1), plan)
  const numbers = all === null ? [] : renumbered(apart, neededOf(all))
  const marks = all === null ? null : marksIn(apart, numbers, plan)
  return marks === null ? null : new ReplyShape(patternOf(apart, numbers, neededOf(marks)), marks, plan.counts)
}

/** The needed values counted from 1, in order; 0 for each other one. */
function renumbered ({ holes }: Apart, needed: Needed): number[] {
  let group = 0
  return holes.map((_, index) => needed.all.has(index + 1) ? ++group : 0)
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

/** What the scanner finds in a reply whose values are numbers of values; null where no shape can tell it. */
function marksIn ({ pieces, holes }: Apart, numbers: readonly number[], plan: Plan): Marks | null {
  const { slots, counts, wants } = plan
  const text = pieces.map((piece, index) => piece + (holes[index] === 'text' ? '#' : '') + (numbers[index] ?? '')).join('')
  const bytes = Buffer.from(text, 'latin1')
  const scanner = new JsonScanner(wants)
  const end = scanner.push(bytes, 0, bytes.length)
  const { found } = scanner
  const usage = bytes.toString('latin1', end).trim() === '' ? onlyUsage(found, plan) : null
  const told = usage === null ? null : tell(usage, counts)
  if (usage === null || told === null || !namesItsKinds(told)) return null
  return { model: markIn(found, slots.model), id: markIn(found, slots.id), finish: markIn(found, slots.finish), told, usage }
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

/** The values that are needed, by their numbers. */
interface Needed {
  readonly told: ReadonlySet<unknown>
  readonly counted: ReadonlySet<unknown>
  readonly all: ReadonlySet<unknown>
}

function neededOf ({ model, id, finish, told: { numbers, total, kinds }, usage }: Marks): Needed {
  const told = [model.group, id.group, finish.group]
  const counted = [...Object.values(numbers), total, ...kinds.map(({ tokens }) => tokens)]
  return { told: new Set(told), counted: new Set(counted), all: new Set([...told, ...counted, ...groupsIn(usage)]) }
}

function patternOf ({ pieces, holes }: Apart, numbers: readonly number[], needed: Needed): RegExp {
  const source = pieces.map((piece, index) => {
    const kind = holes[index]
    return escaped(piece) + (kind === undefined ? '' : valuePattern(kind, numbers[index], needed))
  })
  return new RegExp(`^${source.join('')}$`, 's')
}

function valuePattern (kind: 'text' | 'number', group: number | undefined, { told, counted }: Needed): string {
  if (kind === 'text') return group === 0 ? anyText : told.has(group) ? toldText : plainText
  return group === 0 ? anyNumber : counted.has(group) ? count : jsonNumber
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
