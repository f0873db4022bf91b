/**
 * Finds the few fields of a record that sums need in its bytes as the ledger writes them: compact JSON with a correct checksum. Making the
 * whole record costs ten times as much, and a report reads millions.
 */
import { leaves } from '../../plugins/core/call/measures.js'
import type { Labels } from '../../plugins/core/types.js'
import type { UsageEntry } from '../../plugins/state/usage-store/reader.js'
import type { Parties } from './dimensions.js'
import { bytesOf, endOf, nestedEnd, numberAt, stands, wordsOf, type Bytes } from './json-bytes.js'
import { KnownValues } from './known-values.js'

/** Members whose numbers are read at once, by their positions; the leaves are first. */
const numbers: readonly string[] = [...leaves.map(({ type }) => type), 'time', 'charged']
const [timeAt, chargedAt] = [leaves.length, leaves.length + 1]
/** Members that few reports need: only the positions of their values are kept. */
const noted: readonly string[] = ['key', 'group', 'protocol', 'model', 'outcome', 'labels', 'cost', 'currency']

/** A member of a record, as written before its value. */
interface Step {
  /** Null for a member that is searched each time. */
  readonly lead: Int32Array | null
  readonly leadBytes: number
  /** Its index in `numbers` or `noted`; -1 for any other member. */
  readonly number: number
  readonly note: number
  readonly isParts: boolean
}

/** The fields of a record that sums need. Overwritten by the next one. */
export class Scanned implements Parties, UsageEntry {
  readonly requests = 1
  readonly tokens = leaves.map(() => 0)
  time = 0
  charged = 0
  unpriced = 0
  #json: Bytes = bytesOf(Buffer.alloc(0))
  /** By index in `noted`; 0 if missing. */
  readonly #from = noted.map(() => 0)
  readonly #to = noted.map(() => 0)
  /** The members of the record before, in their order: the next one has nearly always the same. */
  readonly #steps: Step[] = []
  readonly #texts = new KnownValues(textOf)
  readonly #currencies = new KnownValues(textOf)
  readonly #labels = new KnownValues(labelsOf)

  get key (): string | null {
    return this.#text(noted.indexOf('key'))
  }

  get group (): string | null {
    return this.#text(noted.indexOf('group'))
  }

  get protocol (): string {
    return String(this.#text(noted.indexOf('protocol')))
  }

  get model (): string | null {
    return this.#text(noted.indexOf('model'))
  }

  get outcome (): string | null {
    return this.#text(noted.indexOf('outcome'))
  }

  get currency (): string | null {
    return this.#text(noted.indexOf('currency'), this.#currencies)
  }

  /** Decimal text; few are equal. */
  get cost (): string | null {
    const at = noted.indexOf('cost')
    const from = Number(this.#from[at])
    const { bytes } = this.#json
    return from === 0 || bytes[from] !== quote ? null : bytes.toString('latin1', from + 1, Number(this.#to[at]) - 1)
  }

  get labels (): Labels {
    const at = noted.indexOf('labels')
    const from = Number(this.#from[at])
    return from === 0 ? none : this.#labels.at(this.#json.bytes, from, Number(this.#to[at]))
  }

  /** `start`: position of the record's brace. */
  read (json: Bytes, start: number): void {
    this.#json = json
    this.tokens.fill(0)
    this.#from.fill(0)
    this.unpriced = 0
    let at = start
    let count = 0
    do {
      at += 1
      let step = this.#steps[count]
      if (step === undefined || !stands(json, at, step.lead, step.leadBytes)) this.#steps[count] = step = stepAt(json.bytes, at)
      at = this.#take(step, json, at + step.leadBytes)
      count += 1
    } while (json.bytes[at] === comma)
  }

  /** Reads the value of a member, which begins at `from`; returns the position behind it. */
  #take ({ number, note, isParts }: Step, json: Bytes, from: number): number {
    const end = isParts ? nestedEnd(json, from) : endOf(json, from)
    if (isParts) this.unpriced = end < 0 ? 1 : 0
    else if (number >= 0) this.#takeNumber(number, numberAt(json, from, end))
    else if (note >= 0) {
      this.#from[note] = from
      this.#to[note] = end
    }
    return Math.abs(end)
  }

  #takeNumber (place: number, value: number): void {
    if (place === timeAt) this.time = value
    else if (place === chargedAt) this.charged = value
    else this.tokens[place] = value
  }

  #text (at: number, known = this.#texts): string | null {
    const from = Number(this.#from[at])
    return from === 0 ? null : known.at(this.#json.bytes, from, Number(this.#to[at]))
  }
}

const comma = 44
const quote = 34
const none: Labels = {}

function stepAt (bytes: Buffer, at: number): Step {
  const lead = bytes.subarray(at, bytes.indexOf(quote, at + 1) + 2)
  const name = lead.toString('latin1', 1, lead.length - 2)
  return {
    lead: wordsOf(lead),
    leadBytes: lead.length,
    number: numbers.indexOf(name),
    note: noted.indexOf(name),
    isParts: name === 'costParts',
  }
}

/** Null for null. */
function textOf (json: string): string | null {
  const value: unknown = JSON.parse(json)
  return typeof value === 'string' ? value : null
}

function labelsOf (json: string): Labels {
  return Object.fromEntries(Object.entries(Object(JSON.parse(json))).map(([name, value]) => [name, String(value)]))
}
