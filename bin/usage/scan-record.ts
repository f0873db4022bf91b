/**
 * The few fields of a record that sums need, found in its text as the ledger writes it: compact JSON, whose checksum was right. To
 * build all of a record costs four times as much, and a report reads millions.
 */
import { leaves } from '../../plugins/core/measures.js'
import type { Labels } from '../../plugins/core/types.js'
import type { Entry } from './sums.js'
import type { Parties } from './dimensions.js'

/** A member of a record, as it is written before its value. */
interface Step {
  readonly lead: string
  readonly name: string
  /** Of a leaf; -1 of anything else. */
  readonly leaf: number
}

/** A record as sums see it. Overwritten by the next one. */
export class Scanned implements Parties, Entry {
  readonly requests = 1
  readonly tokens = leaves.map(() => 0)
  time = 0
  key: string | null = null
  group: string | null = null
  protocol = ''
  model: string | null = null
  outcome: string | null = null
  charged = 0
  cost: string | null = null
  currency: string | null = null
  unpriced = 0
  #labels = ''
  /** The members of the record before, in their order: the next one has nearly always the same. */
  readonly #steps: Step[] = []

  get labels (): Labels {
    return labelsOf(this.#labels)
  }

  /** `text`: one character for each byte. `start`: of the record's brace. */
  read (text: string, start: number): void {
    this.key = this.group = this.model = this.outcome = this.cost = this.currency = null
    this.unpriced = 0
    this.#labels = ''
    this.tokens.fill(0)
    let at = start
    let count = 0
    do {
      at += 1
      let step = this.#steps[count]
      if (step === undefined || !text.startsWith(step.lead, at)) this.#steps[count] = step = stepAt(text, at)
      const from = at + step.lead.length
      const to = endOf(text, from)
      if (step.leaf >= 0) this.tokens[step.leaf] = numberOf(text, from, to)
      else this.#take(step.name, text, from, to)
      at = to
      count += 1
    } while (text.charCodeAt(at) === comma)
  }

  #take (name: string, text: string, from: number, to: number): void {
    switch (name) {
      case 'time': this.time = numberOf(text, from, to); break
      case 'key': this.key = stringOf(text, from, to); break
      case 'group': this.group = stringOf(text, from, to); break
      case 'protocol': this.protocol = String(stringOf(text, from, to)); break
      case 'model': this.model = stringOf(text, from, to); break
      case 'outcome': this.outcome = stringOf(text, from, to); break
      case 'charged': this.charged = numberOf(text, from, to); break
      case 'cost': this.cost = stringOf(text, from, to); break
      case 'currency': this.currency = stringOf(text, from, to); break
      case 'costParts': this.unpriced = hasNull(text.slice(from, to)) ? 1 : 0; break
      case 'labels': this.#labels = text.slice(from, to)
    }
  }
}

const comma = 44
const quote = 34
const backslash = 92
const [openBrace, closeBrace, openBracket, closeBracket] = [123, 125, 91, 93]
const steps = new Map<string, Step>()

function stepAt (text: string, at: number): Step {
  const lead = text.slice(at, text.indexOf('"', at + 1) + 2)
  const known = steps.get(lead)
  if (known !== undefined) return known
  const name = lead.slice(1, -2)
  const step = { lead, name, leaf: leaves.findIndex(({ type }) => type === name) }
  steps.set(lead, step)
  return step
}

/** Whole numbers, of which there are most, without a text of their own. */
function numberOf (text: string, from: number, to: number): number {
  let value = 0
  for (let at = from; at < to; at += 1) {
    const digit = text.charCodeAt(at) - 48
    if (digit < 0 || digit > 9) return Number(text.slice(from, to))
    value = value * 10 + digit
  }
  return value
}

/** Where the value that begins at `from` ends. */
function endOf (text: string, from: number): number {
  const first = text.charCodeAt(from)
  if (first === quote) return stringEnd(text, from)
  if (first === openBrace || first === openBracket) return nestedEnd(text, from)
  let to = from
  for (let code = first; code !== comma && code !== closeBrace; code = text.charCodeAt(to)) to += 1
  return to
}

function stringEnd (text: string, from: number): number {
  let end = text.indexOf('"', from + 1)
  while (isEscaped(text, end)) end = text.indexOf('"', end + 1)
  return end + 1
}

function isEscaped (text: string, at: number): boolean {
  let before = at
  while (text.charCodeAt(before - 1) === backslash) before -= 1
  return (at - before) % 2 === 1
}

function nestedEnd (text: string, from: number): number {
  let depth = 0
  let at = from
  do {
    const code = text.charCodeAt(at)
    if (code === quote) at = stringEnd(text, at) - 1
    else if (code === openBrace || code === openBracket) depth += 1
    else if (code === closeBrace || code === closeBracket) depth -= 1
    at += 1
  } while (depth > 0)
  return at
}

/** Null for null. */
function stringOf (text: string, from: number, to: number): string | null {
  if (text.charCodeAt(from) !== quote) return null
  const value = text.slice(from + 1, to - 1)
  return isPlain(value) ? value : String(parsed(text.slice(from, to)))
}

function isPlain (value: string): boolean {
  for (let at = 0; at < value.length; at += 1) {
    const code = value.charCodeAt(at)
    if (code === backslash || code > 126) return false
  }
  return true
}

function parsed (value: string): unknown {
  return JSON.parse(Buffer.from(value, 'latin1').toString('utf8'))
}

/** Of an object of decimal texts and nulls. */
function hasNull (object: string): boolean {
  if (!object.includes(':null')) return false
  return Object.values(Object(parsed(object))).includes(null)
}

const maxKnown = 10_000
const known = new Map<string, Labels>()

/** Most requests have the labels of many others. */
function labelsOf (object: string): Labels {
  if (object === '') return none
  const found = known.get(object)
  if (found !== undefined) return found
  if (known.size >= maxKnown) known.clear()
  const labels: Labels = Object.fromEntries(Object.entries(Object(parsed(object))).map(([name, value]) => [name, String(value)]))
  // A copy: a part of a text keeps all of it.
  known.set(Buffer.from(object, 'latin1').toString('latin1'), labels)
  return labels
}

const none: Labels = {}
