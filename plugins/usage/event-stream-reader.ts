import { backslash, carriageReturn, closeObject, lineFeed, openArray, openObject, standsAt } from '../core/bytes.js'
import { EventReader } from './event-reader.js'
import { JsonScanner } from './json-scanner.js'
import type { Meter } from './meter.js'
import type { Plan } from './plan.js'
import type { ReplyReader } from './reply-reader.js'

/** Events at the start that are always read: they name the model and the reply. So are those after the last usage. */
const firstEvents = 2
/** Whole events shorter than this tell no finish reason. */
const shortBytes = 24
/** Of the newest events that were passed by, as many are read where the end of a stream is looked for: the last may tell nothing. */
const lastEvents = 3

/** An event of failure names itself at its begin: `event: error`, `data: {"error":`, `data: {"type":"response.failed"`. */
const error = 'error'
const failed = 'failed'
const errorByte = error.charCodeAt(0)
const failedByte = failed.charCodeAt(0)
/** Where the names begin, with one blank more or less. */
const namesAt = [6, 7, 8, 9, 15, 16, 24, 25]

/** Whole events of one piece that were passed by. */
interface Run {
  bytes: Buffer | null
  from: number
  to: number
}

function noRun (): Run {
  return { bytes: null, from: 0, to: 0 }
}

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
  private first = firstEvents
  /** The newest events that were passed by: the finish reason of a chat stands in one of the last before its usage. */
  private newer = noRun()
  private older = noRun()
  /** No event was read since. */
  private isPassedNewest = false

  constructor (plan: Plan, meter: Meter) {
    this.plan = plan
    this.meter = meter
    this.sign = plan.rules.sign
    this.signByte = plan.rules.sign.charCodeAt(0)
    this.scanner = new JsonScanner(plan.search)
    this.events = new EventReader(this.scanner)
  }

  get overflow (): boolean {
    return this.scanner.overflow
  }

  get whole (): boolean {
    return this.meter.complete || this.meter.ended || this.plan.rules.ending === null
  }

  get failing (): boolean {
    return this.scanner.first !== undefined && this.meter.fails(this.scanner.found, this.scanner.openSlot)
  }

  /** True where the event that is being read may still turn out to be the added one. */
  get undecided (): boolean {
    return !(Number(this.scanner.found[this.plan.slots.listed]) > 0)
  }

  /** True between events, where a line feed at the start of the next piece still belongs to the one before. */
  get atHalfEnd (): boolean {
    return this.events.idle && this.events.afterReturn
  }

  /** True where a piece was read that is whole events, none of which tells of usage. */
  passByAll (chunk: Buffer): boolean {
    return this.passBy(chunk, 0, true) === chunk.length
  }

  read (chunk: Buffer, onEvent?: OnEvent): void {
    let at = 0
    while (at < chunk.length) {
      const passed = this.passBy(chunk, at)
      if (passed > at) {
        onEvent?.(passed, false)
        at = passed
        continue
      }
      const end = this.events.next(chunk, at)
      if (end === -1) return
      const isExtra = this.endEvent()
      onEvent?.(end, isExtra)
      at = end
    }
  }

  /** Takes a last event that no blank line ended. */
  end (): boolean {
    const isExtra = this.endEvent()
    // A stream that failed tells it in its last event.
    this.readPassed(true)
    return isExtra
  }

  /** Returns whether the event was the one that was asked for on the caller's behalf. */
  private endEvent (): boolean {
    const { scanner, meter } = this
    if (scanner.first === undefined) return false
    this.first -= 1
    this.isPassedNewest = false
    if (scanner.done) meter.take(scanner.found)
    else this.broken ||= scanner.first === openObject
    // `[DONE]`, the one event that is no object.
    meter.complete ||= scanner.first === openArray
    const isExtra = scanner.done && meter.isExtra
    const hasUsage = scanner.done && meter.hasUsage
    scanner.reset()
    if (hasUsage) this.readUsageEnd()
    return isExtra
  }

  /** What follows a finish reason and its usage is the end: it is read, for whoever leaves before the upstream does. */
  private readUsageEnd (): void {
    this.readPassed(this.meter.finishReason === null)
    if (this.meter.finishReason !== null) this.first = Infinity
  }

  /** Reads the last events that were passed by, where something is still looked for. */
  private readPassed (isWanted: boolean): void {
    const { newer, older, isPassedNewest, meter: { ended } } = this
    this.newer = noRun()
    this.older = noRun()
    if (!isWanted) return
    keepLast(older, keepLast(newer, lastEvents))
    this.readRun(older)
    this.readRun(newer)
    // What came after it has the last word.
    if (!isPassedNewest) this.meter.ended ||= ended
  }

  private readRun ({ bytes, from, to }: Run): void {
    if (bytes === null) return
    const events = new EventReader(this.scanner)
    for (let at = from; at < to;) {
      at = events.next(bytes, at)
      this.endEvent()
    }
  }

  /** Returns the offset up to which `chunk` holds whole events that tell nothing of usage, `at` or less for none. */
  private passBy (chunk: Buffer, at: number, allOnly = false): number {
    if (this.first > 0 || !this.events.idle || this.events.afterReturn) return at
    const sign = this.findSign(chunk, at)
    const end = beforeFailure(chunk, at, endOfEvents(chunk, findEscapedLetter(chunk, at, sign === -1 ? chunk.length : sign)))
    if (end <= at || (allOnly && end < chunk.length) || !endsInObject(chunk, end)) return at
    this.events.skipped()
    this.isPassedNewest = true
    if (end - at > shortBytes) this.keep(chunk, at, end)
    return end
  }

  /** Nothing is made anew: this is for most pieces of each stream. */
  private keep (bytes: Buffer, from: number, to: number): void {
    const run = this.older
    this.older = this.newer
    this.newer = run
    run.bytes = bytes
    run.from = from
    run.to = to
  }

  private findSign (chunk: Buffer, from: number): number {
    let at = chunk.indexOf(this.signByte, from)
    while (at !== -1 && !standsAt(this.sign, chunk, at)) at = chunk.indexOf(this.signByte, at + 1)
    return at
  }
}

/**
 * Offset of the first letter of a name's kind that is written as `\u00..`, `to` for none. Nobody needs to write one so, but
 * the sign of a usage object may hide behind it.
 */
function findEscapedLetter (chunk: Buffer, from: number, to: number): number {
  let at = chunk.indexOf(backslash, from)
  while (at !== -1 && at < to && !(standsAt('u00', chunk, at + 1) && isLetterRow(chunk[at + 4]))) at = chunk.indexOf(backslash, at + 2)
  return at === -1 ? to : Math.min(at, to)
}

/** U+0040 to U+007F. */
function isLetterRow (digit: number | undefined): boolean {
  return digit !== undefined && digit >= 0x34 && digit <= 0x37
}

/** Offset after the last blank line before `to`, 0 for none. A lone CR ends no line here: such a stream is read byte by byte. */
function endOfEvents (chunk: Buffer, to: number): number {
  let at = chunk[to - 1] === lineFeed ? to - 1 : chunk.lastIndexOf(lineFeed, to)
  while (at > 0) {
    const before = chunk[at - 1] === carriageReturn ? at - 2 : at - 1
    if (chunk[before] === lineFeed) return at + 1
    at = chunk.lastIndexOf(lineFeed, at - 1)
  }
  return 0
}

/** Offset up to which whole events tell of no failure. One is the first of its piece, or the last: nothing follows it. */
function beforeFailure (chunk: Buffer, at: number, end: number): number {
  if (end <= at || beginsFailure(chunk, at)) return at
  const last = endOfEvents(chunk, end - 3)
  return last > at && beginsFailure(chunk, last) ? last : end
}

function beginsFailure (chunk: Buffer, from: number): boolean {
  for (const place of namesAt) {
    const byte = chunk[from + place]
    if (byte === errorByte && standsAt(error, chunk, from + place)) return true
    if (byte === failedByte && standsAt(failed, chunk, from + place)) return true
  }
  return false
}

/** Leaves the last events of a run in it, and returns how many of `most` it lacks. */
function keepLast (run: Run, most: number): number {
  if (run.bytes === null) return most
  let left = most
  let at = run.to
  while (left > 0 && at > run.from) {
    at = Math.max(run.from, endOfEvents(run.bytes, at - 2))
    left -= 1
  }
  run.from = at
  return left
}

/** False for `[DONE]`, for comments, and for whatever else is no JSON object: those are read. */
function endsInObject (chunk: Buffer, end: number): boolean {
  const blank = chunk[end - 2] === carriageReturn ? end - 3 : end - 2
  return chunk[chunk[blank - 1] === carriageReturn ? blank - 2 : blank - 1] === closeObject
}
