import { EventReader } from './event-reader.js'
import { JsonScanner } from './json-scanner.js'
import type { Meter } from './meter.js'
import type { Plan } from './plan.js'
import type { ReplyReader } from './reply-reader.js'
import { standsAt } from './wants.js'

const lineFeed = 0x0a
const carriageReturn = 0x0d
const openObject = 0x7b
const openArray = 0x5b
const closeObject = 0x7d

/** Pieces at the start that are always read: the first events name the model and the reply. */
const firstPieces = 2
/** Whole events shorter than this tell no finish reason. */
const shortBytes = 24

/** Told of each event, or run of events, that ended at an offset of the newest piece. */
export type OnEvent = (end: number, isExtra: boolean) => void

/**
 * Reads an event stream. Most events are text and tell nothing of usage: a run of whole events without the protocol's
 * sign is passed by for the price of a native search. Every other byte goes through the event reader and the scanner.
 */
export class EventStreamReader implements ReplyReader {
  broken = false
  private readonly plan: Plan
  private readonly meter: Meter
  private readonly sign: string
  private readonly signByte: number
  private readonly scanner: JsonScanner
  private readonly events: EventReader
  private first = firstPieces
  /** The newest events that were passed by: the finish reason of a chat stands in the last one before its usage. */
  private passed: Buffer | null = null
  private passedEnd = 0

  constructor (plan: Plan, meter: Meter) {
    this.plan = plan
    this.meter = meter
    this.sign = plan.rules.sign
    this.signByte = plan.rules.sign.charCodeAt(0)
    this.scanner = new JsonScanner(plan.wants)
    this.events = new EventReader(this.scanner)
  }

  get overflow (): boolean {
    return this.scanner.overflow
  }

  /** True where the event that is being read may still turn out to be the added one. */
  get undecided (): boolean {
    return !(Number(this.scanner.found[this.plan.slots.listed]) > 0)
  }

  /** True between events, where a line feed at the start of the next piece still belongs to the one before. */
  get atHalfEnd (): boolean {
    return this.events.idle && this.events.afterReturn
  }

  read (chunk: Buffer, onEvent?: OnEvent): void {
    let at = this.passBy(chunk)
    if (at > 0) onEvent?.(at, false)
    while (at < chunk.length) {
      const end = this.events.next(chunk, at)
      if (end === -1) return
      const isExtra = this.endEvent()
      onEvent?.(end, isExtra)
      at = end
    }
  }

  /** Takes a last event that no blank line ended, and looks for a finish reason in what was passed by. */
  end (): boolean {
    const isExtra = this.endEvent()
    const passed = this.passed
    if (this.meter.finishReason !== null || passed === null) return isExtra
    const events = new EventReader(this.scanner)
    for (let at = 0; at < this.passedEnd;) {
      at = events.next(passed, at)
      this.endEvent()
    }
    return isExtra
  }

  /** Returns whether the event was the one that was asked for on the caller's behalf. */
  private endEvent (): boolean {
    const { scanner, meter } = this
    if (scanner.first === 0) return false
    if (scanner.done) meter.take(scanner.found)
    else this.broken ||= scanner.first === openObject
    // `[DONE]`, the one event that is no object.
    meter.complete ||= scanner.first === openArray
    const isExtra = scanner.done && meter.isExtra
    scanner.reset()
    return isExtra
  }

  /** Returns the offset up to which `chunk` holds whole events that tell nothing of usage, 0 for none. */
  private passBy (chunk: Buffer): number {
    if (this.first > 0) {
      this.first -= 1
      return 0
    }
    if (!this.events.idle) return 0
    const end = endOfEvents(chunk)
    if (end === 0 || !endsInObject(chunk, end) || this.holdsSign(chunk)) return 0
    this.events.skipped()
    if (end > shortBytes) {
      this.passed = chunk
      this.passedEnd = end
    }
    return end
  }

  private holdsSign (chunk: Buffer): boolean {
    let at = chunk.indexOf(this.signByte)
    while (at !== -1) {
      if (standsAt(this.sign, chunk, at)) return true
      at = chunk.indexOf(this.signByte, at + 1)
    }
    return false
  }
}

/** Offset after the last blank line, 0 for none. A lone CR ends no line here: such a stream is read byte by byte. */
function endOfEvents (chunk: Buffer): number {
  let at = chunk.length - 1
  if (chunk[at] !== lineFeed) at = chunk.lastIndexOf(lineFeed)
  while (at > 0) {
    const before = chunk[at - 1] === carriageReturn ? at - 2 : at - 1
    if (chunk[before] === lineFeed) return at + 1
    at = chunk.lastIndexOf(lineFeed, before)
  }
  return 0
}

/** False for `[DONE]`, for comments, and for whatever else is no JSON object: those are read. */
function endsInObject (chunk: Buffer, end: number): boolean {
  const beforeBlank = chunk[end - 2] === carriageReturn ? end - 4 : end - 3
  return chunk[chunk[beforeBlank] === carriageReturn ? beforeBlank - 1 : beforeBlank] === closeObject
}
