import type { ModalityTokens } from '../core/types.js'
import { countedOf, type Counted, type Numbers, type Told } from './count-tokens.js'
import type { CountPlaces } from './plan.js'
import type { Outside } from './served.js'
import { isObject, type JsonObject } from './usage-object.js'

/** Replies above this are read as fast by the scanner, which searches for the end of a text natively. */
export const maxShapedBytes = 4 * 1024

/** What a whole reply told. */
export interface Reading {
  readonly model: string | null
  readonly id: string | null
  readonly finish: string | null
  readonly counted: Counted
  readonly outside: Outside
  /** What of its usage object tells how it was served; null for nothing. */
  readonly inside: JsonObject | null
  /** Its usage object: for what else may follow in the same reply. */
  readonly usage: () => JsonObject
}

/** The groups of the pattern, by what they hold; null for a text that is not told. Every number in `told` and `usage` is a group. */
export interface Marks {
  readonly model: number | null
  readonly id: number | null
  readonly finish: number | null
  readonly told: Told
  readonly usage: JsonObject
  /** Texts are `#` and the number of their group, or stand for themselves; so in `inside`. */
  readonly outside: Outside
  readonly inside: JsonObject | null
}

/**
 * What the replies of one upstream have in common, byte by byte: all but the texts and numbers in them. A reply that fits is
 * read by one match, several times as fast as by the scanner, and to the same result; one that does not fit tells nothing.
 */
export class ReplyShape {
  private readonly pattern: RegExp
  private readonly marks: Marks
  private readonly counts: CountPlaces
  private readonly model: Recurring
  private readonly id: Recurring
  private readonly finish: Recurring

  constructor (pattern: RegExp, marks: Marks, counts: CountPlaces) {
    this.pattern = pattern
    this.marks = marks
    this.counts = counts
    this.model = new Recurring(marks.model)
    this.id = new Recurring(marks.id)
    this.finish = new Recurring(marks.finish)
  }

  /** What a whole reply tells; null where it does not fit. `text`: its bytes as latin1. */
  read (reply: Buffer, text: string): Reading | null {
    const match = this.pattern.exec(text)
    if (match === null) return null
    const { told, usage, outside, inside } = this.marks
    return {
      model: this.model.in(match, reply),
      id: this.id.in(match, reply),
      finish: this.finish.in(match, reply),
      counted: countedOf(toldIn(match, told), this.counts),
      outside: {
        tier: textOf(match, outside.tier), speed: textOf(match, outside.speed), region: textOf(match, outside.region), counts: outside.counts,
      },
      inside: inside === null ? null : filled(match, inside),
      usage: () => filled(match, usage),
    }
  }
}

/** A text that mostly is the same as in the reply before. Copied: a group of a match holds on to the whole reply. */
class Recurring {
  private readonly group: number | null
  private text: string | null = null

  constructor (group: number | null) {
    this.group = group
  }

  in (match: RegExpExecArray, reply: Buffer): string | null {
    const text = this.group === null ? undefined : match[this.group]
    if (text !== undefined && text !== this.text) {
      const at = match.input.indexOf(text)
      this.text = reply.toString('latin1', at, at + text.length)
    }
    return this.text
  }
}

function toldIn (match: readonly string[], { numbers, total, kinds, splitsOutput, odd }: Told): Told {
  return {
    numbers: numbersIn(match, numbers),
    total: numberIn(match, total),
    kinds: kindsIn(match, kinds),
    splitsOutput,
    odd,
  }
}

function kindsIn (match: readonly string[], kinds: Told['kinds']): Told['kinds'] {
  const found: ModalityTokens[] = []
  for (const { direction, modality, tokens: group } of kinds) {
    const tokens = Number(match[group])
    if (tokens > 0) found.push({ direction, modality, tokens })
  }
  return found
}

function numbersIn (match: readonly string[], numbers: Numbers): Numbers {
  return {
    input: numberIn(match, numbers.input),
    cacheRead: numberIn(match, numbers.cacheRead),
    cacheWrite: numberIn(match, numbers.cacheWrite),
    cacheWrite5m: numberIn(match, numbers.cacheWrite5m),
    cacheWrite1h: numberIn(match, numbers.cacheWrite1h),
    toolInput: numberIn(match, numbers.toolInput),
    output: numberIn(match, numbers.output),
    reasoning: numberIn(match, numbers.reasoning),
  }
}

function numberIn (match: readonly string[], group: number | null): number | null {
  return group === null ? null : Number(match[group])
}

/** The object with numbers in place of groups. */
function filled (match: readonly string[], shape: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(shape).map(([key, value]) => [key, filledValue(match, value)]))
}

function filledValue (match: readonly string[], value: unknown): unknown {
  if (typeof value === 'number') return Number(match[value])
  if (typeof value === 'string') return textOf(match, value)
  if (Array.isArray(value)) return value.map((each: unknown) => filledValue(match, each))
  return isObject(value) ? filled(match, value) : value
}

function textOf (match: readonly string[], mark: string | null): string | null {
  return mark?.startsWith('#') === true ? String(match[Number(mark.slice(1))]) : mark
}
