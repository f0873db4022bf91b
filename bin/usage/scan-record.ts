/**
 * The few fields of a record that sums need, found in its bytes as the ledger writes it: compact JSON, whose checksum was right. To
 * build all of a record costs ten times as much, and a report reads millions.
 */
import { leaves } from '../../plugins/core/measures.js'
import type { Labels } from '../../plugins/core/types.js'
import type { UsageEntry } from '../../plugins/state/usage-store/reader.js'
import type { Parties } from './dimensions.js'
import { KnownValues } from './known-values.js'

/** A member of a record, as it is written before its value. */
interface Step {
  readonly lead: Buffer
  readonly name: string
  /** Of a leaf; -1 of anything else. */
  readonly leaf: number
  /** Of a field that is read when it is asked for; -1 of anything else. */
  readonly asked: number
}

/** Fields that few reports look at: where their values stand, until somebody asks. */
const asked = ['key', 'group', 'protocol', 'model', 'outcome', 'labels'] as const
type Asked = typeof asked[number]

/** A record as sums see it. Overwritten by the next one. */
export class Scanned implements Parties, UsageEntry {
  readonly requests = 1
  readonly tokens = leaves.map(() => 0)
  time = 0
  charged = 0
  cost: string | null = null
  currency: string | null = null
  unpriced = 0
  #bytes: Buffer = Buffer.alloc(0)
  /** By the place of their names in `asked`; 0 of what is not there. */
  readonly #from = asked.map(() => 0)
  readonly #to = asked.map(() => 0)
  /** The members of the record before, in their order: the next one has nearly always the same. */
  readonly #steps: Step[] = []
  readonly #texts = new KnownValues(textOf)
  readonly #labels = new KnownValues(labelsOf)

  get key (): string | null {
    return this.#text('key')
  }

  get group (): string | null {
    return this.#text('group')
  }

  get protocol (): string {
    return String(this.#text('protocol'))
  }

  get model (): string | null {
    return this.#text('model')
  }

  get outcome (): string | null {
    return this.#text('outcome')
  }

  get labels (): Labels {
    const at = asked.indexOf('labels')
    const from = Number(this.#from[at])
    return from === 0 ? none : this.#labels.at(this.#bytes, from, Number(this.#to[at]))
  }

  /** `start`: of the record's brace. */
  read (bytes: Buffer, start: number): void {
    this.cost = this.currency = null
    this.unpriced = 0
    this.tokens.fill(0)
    this.#bytes = bytes
    this.#from.fill(0)
    let at = start
    let count = 0
    do {
      at += 1
      let step = this.#steps[count]
      if (step === undefined || !begins(bytes, at, step.lead)) this.#steps[count] = step = stepAt(bytes, at)
      const from = at + step.lead.length
      const to = endOf(bytes, from)
      if (step.leaf >= 0) this.tokens[step.leaf] = numberOf(bytes, from, to)
      else if (step.asked >= 0) {
        this.#from[step.asked] = from
        this.#to[step.asked] = to
      } else this.#take(step.name, bytes, from, to)
      at = to
      count += 1
    } while (bytes[at] === comma)
  }

  #take (name: string, bytes: Buffer, from: number, to: number): void {
    switch (name) {
      case 'time': this.time = numberOf(bytes, from, to); break
      case 'charged': this.charged = numberOf(bytes, from, to); break
      // Decimal text, of which few are the same.
      case 'cost': this.cost = bytes[from] === quote ? bytes.toString('latin1', from + 1, to - 1) : null; break
      case 'currency': this.currency = this.#texts.at(bytes, from, to); break
      case 'costParts': this.unpriced = hasNull(bytes, from, to) ? 1 : 0
    }
  }

  #text (name: Asked): string | null {
    const at = asked.indexOf(name)
    const from = Number(this.#from[at])
    return from === 0 ? null : this.#texts.at(this.#bytes, from, Number(this.#to[at]))
  }
}

const comma = 44
const quote = 34
const backslash = 92
const letterN = 110
const [openBrace, closeBrace, openBracket, closeBracket] = [123, 125, 91, 93]
const none: Labels = {}

function begins (bytes: Buffer, from: number, lead: Buffer): boolean {
  for (let at = 0; at < lead.length; at += 1) if (bytes[from + at] !== lead[at]) return false
  return true
}

function stepAt (bytes: Buffer, at: number): Step {
  const lead = Buffer.from(bytes.subarray(at, bytes.indexOf(quote, at + 1) + 2))
  const name = lead.toString('latin1', 1, lead.length - 2)
  return { lead, name, leaf: leaves.findIndex(({ type }) => type === name), asked: asked.findIndex((known) => known === name) }
}

/** Whole numbers, of which there are most, without a text of their own. */
function numberOf (bytes: Buffer, from: number, to: number): number {
  let value = 0
  for (let at = from; at < to; at += 1) {
    const digit = Number(bytes[at]) - 48
    if (digit < 0 || digit > 9) return Number(bytes.toString('latin1', from, to))
    value = value * 10 + digit
  }
  return value
}

/** Where the value that begins at `from` ends. */
function endOf (bytes: Buffer, from: number): number {
  const first = bytes[from]
  if (first === quote) return stringEnd(bytes, from)
  if (first === openBrace || first === openBracket) return nestedEnd(bytes, from)
  let to = from
  for (let code = first; code !== comma && code !== closeBrace; code = bytes[to]) to += 1
  return to
}

function stringEnd (bytes: Buffer, from: number): number {
  let at = from + 1
  for (let code = bytes[at]; code !== quote; code = bytes[at]) at += code === backslash ? 2 : 1
  return at + 1
}

function nestedEnd (bytes: Buffer, from: number): number {
  let depth = 0
  let at = from
  do {
    const code = bytes[at]
    if (code === quote) at = stringEnd(bytes, at)
    else {
      if (code === openBrace || code === openBracket) depth += 1
      else if (code === closeBrace || code === closeBracket) depth -= 1
      at += 1
    }
  } while (depth > 0)
  return at
}

/** Of an object of decimal texts and nulls: no other letter stands outside of its texts. */
function hasNull (bytes: Buffer, from: number, to: number): boolean {
  for (let at = from; at < to;) {
    const code = bytes[at]
    if (code === letterN) return true
    at = code === quote ? stringEnd(bytes, at) : at + 1
  }
  return false
}

/** Null for null. */
function textOf (json: string): string | null {
  const value: unknown = JSON.parse(json)
  return typeof value === 'string' ? value : null
}

function labelsOf (json: string): Labels {
  return Object.fromEntries(Object.entries(Object(JSON.parse(json))).map(([name, value]) => [name, String(value)]))
}
