import { tell, type Told } from './count-tokens.js'
import { JsonScanner } from './json-scanner.js'
import { tellsFailure } from './meter.js'
import type { Plan } from './plan.js'
import { ReplyShape, type Marks } from './reply-shape.js'
import { nothingOutside, servedPart, takeOutside, textIn } from './served.js'
import { isObject, maxTokenDigits, type JsonObject } from './usage-object.js'

/** Values of one shape: the pattern of more takes long to make, and the engine refuses to make the largest. */
const maxValues = 128

/** A key, or a text or number that may differ in the next reply. */
const tokens = /("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?|-*\d[\d.eE+-]*/gs
/** Within the usage, words such as `TEXT` name what is counted: they are part of the shape. */
const word = /^[A-Z][A-Z_]*$/

// What may stand where a value was. Each ends where the shape goes on, so that a match never tries a second way. No more exact
// than they must be: the engine takes milliseconds to make patterns of many numbers with a sign, a fraction and an exponent.
const anyText = '[^"\\\\]*(?:\\\\.[^"\\\\]*)*'
const anyNumber = '-?\\d[\\d.eE+-]*'
/** A text within the usage, and one that is told: they stand for themselves, and an empty one tells nothing. */
const plainText = '([ !#-\\[\\]-~]*)'
const toldText = '([ !#-\\[\\]-~]+)'
/** Numbers within the usage, as JSON has them: a count, and a price. */
const count = `(?!0\\d)(\\d{1,${maxTokenDigits}})`
const fraction = '(?!0\\d)(\\d+\\.\\d+)'

interface Value {
  readonly kind: 'text' | 'number'
  readonly text: string
  /** What stands for it: its number, 0 where it is not needed, or its own text where that is part of the shape. */
  readonly stand: number | string
}

/** A reply without the values that may differ: a piece before each, and one after the last. */
interface Apart {
  readonly pieces: readonly string[]
  readonly values: readonly Value[]
}

/**
 * The shape of a whole reply, null where it tells no usage or more than one match can read. To find out which value means
 * what, the reply is read with the scanner as any other, with the number of each value in its place; and once more with only
 * those numbered that are needed.
 */
export function learnShape (reply: Buffer, plan: Plan): ReplyShape | null {
  const text = reply.toString('latin1')
  const apart = takeApart(text)
  const all = apart.values.length > maxValues ? null : marksIn(apart, plan)
  const needed = all === null ? apart : onlyNeeded(apart, all)
  const marks = all === null ? null : marksIn(needed, plan)
  if (marks === null || !namesItsKinds(marks)) return null
  const shape = new ReplyShape(patternOf(needed, marks), marks, plan.counts)
  // Numbers within the usage may be of other kinds than a shape reads.
  return shape.read(reply, text) === null ? null : shape
}

function takeApart (text: string): Apart {
  const pieces: string[] = []
  const values: Value[] = []
  let from = 0
  for (const { 0: token, 1: quoted, 2: colon, index } of text.matchAll(tokens)) {
    if (colon !== undefined) continue
    const edge = quoted === undefined ? 0 : 1
    pieces.push(text.slice(from, index + edge))
    from = index + token.length - edge
    values.push({ kind: quoted === undefined ? 'number' : 'text', text: text.slice(index + edge, from), stand: values.length + 1 })
  }
  return { pieces: [...pieces, text.slice(from)], values }
}

/** Marks, and the values that are part of the shape because something is counted by them. */
interface Learnt extends Marks {
  readonly literals: ReadonlySet<Value['stand']>
}

function textsOf ({ tier, speed, region }: Marks['outside']): Array<string | null> {
  return [tier, speed, region]
}

/** The same with only the needed values numbered, from 1, in order. */
function onlyNeeded ({ pieces, values }: Apart, { model, id, finish, told, usage, outside, literals }: Learnt): Apart {
  const within = new Set<Value['stand']>(groupsIn(usage))
  const needed = new Set<Value['stand'] | null>([model, id, finish, ...countedIn(told), ...within, ...groupsIn(textsOf(outside))])
  let group = 0
  const standFor = ({ text, stand }: Value): Value['stand'] => {
    if (literals.has(stand)) return text
    if (!needed.has(stand)) return 0
    return within.has(stand) && word.test(text) ? text : ++group
  }
  return { pieces, values: values.map((value) => ({ ...value, stand: standFor(value) })) }
}

/** What the scanner finds in a reply whose values are replaced; null where no shape can tell it. */
function marksIn (apart: Apart, plan: Plan): Learnt | null {
  const { slots, counts, wants } = plan
  const text = filled(apart, (piece) => piece, ({ kind, stand }) => typeof stand === 'number' && kind === 'text' ? `#${stand}` : String(stand))
  const bytes = Buffer.from(text, 'latin1')
  const scanner = new JsonScanner(wants)
  const end = scanner.push(bytes, 0, bytes.length)
  const { found } = scanner
  const isPlain = text.slice(end).trim() === '' && !slots.errors.some((slot) => tellsFailure(found[slot]))
  const usage = isPlain ? onlyUsage(found, plan) : null
  const told = usage === null ? null : tell(usage, counts)
  if (usage === null || told === null || !standsIn(text, usage)) return null
  const outside = nothingOutside()
  takeOutside(outside, found, plan)
  return {
    model: markIn(found, slots.model),
    id: markIn(found, slots.id),
    finish: markIn(found, slots.finish),
    told,
    usage,
    outside,
    inside: servedPart(usage, plan.rules),
    literals: new Set(groupsIn(slots.counts.flatMap(({ reply, but }) => [...reply, ...but].map((slot) => found[slot])))),
  }
}

/** False where a key stands in the usage twice: the value that counts for nothing must be JSON all the same. */
function standsIn (text: string, usage: JsonObject): boolean {
  return withoutSpace(text).includes(withoutSpace(JSON.stringify(usage)))
}

function withoutSpace (text: string): string {
  return text.replace(/\s+/g, '')
}

/** The pieces with what stands between them. */
function filled ({ pieces, values }: Apart, written: (piece: string) => string, inPlace: (value: Value) => string): string {
  return pieces.map((piece, index) => {
    const value = values[index]
    return value === undefined ? written(piece) : written(piece) + inPlace(value)
  }).join('')
}

/** Null where it is told by several objects, or by tools too. */
function onlyUsage (found: readonly unknown[], { slots, counts }: Plan): JsonObject | null {
  const [usage, ...others] = slots.usage.map((slot) => found[slot]).filter(isObject)
  if (usage === undefined || others.length > 0 || slots.tools.some((slot) => isObject(found[slot]))) return null
  return counts.added !== null && usage[counts.added.list] !== undefined ? null : usage
}

/** False where the kinds of content are values themselves. */
function namesItsKinds ({ told: { kinds } }: Marks): boolean {
  return kinds.every(({ modality }) => !modality.startsWith('#'))
}

function countedIn ({ numbers, total, kinds }: Told): Array<number | null> {
  return [...Object.values(numbers), total, ...kinds.map(({ tokens }) => tokens)]
}

function patternOf (apart: Apart, { model, id, finish, told, outside }: Marks): RegExp {
  const toldTexts = new Set<Value['stand'] | null>([model, id, finish, ...groupsIn(textsOf(outside))])
  const counted = new Set<Value['stand'] | null>(countedIn(told))
  const source = filled(apart, escaped, ({ kind, text, stand }) => {
    if (typeof stand === 'string') return escaped(stand)
    if (kind === 'text') return stand === 0 ? anyText : toldTexts.has(stand) ? toldText : plainText
    if (stand === 0) return anyNumber
    return text.includes('.') && !counted.has(stand) ? fraction : count
  })
  return new RegExp(`^${source}$`, 's')
}

/** The numbers of all values within a value, where each has one. */
function groupsIn (value: unknown): number[] {
  if (typeof value === 'number') return [value]
  if (typeof value === 'string') return value.startsWith('#') ? [Number(value.slice(1))] : []
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(groupsIn) : []
}

function markIn (found: readonly unknown[], slots: readonly number[]): number | null {
  const text = textIn(found, slots)
  return text === null ? null : Number(text.slice(1))
}

function escaped (piece: string): string {
  return piece.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
}
