import { openArray, openObject } from '../core/body/bytes.js'
import { EventReader } from './event-reader.js'
import { JsonScanner } from './json-scanner.js'
import type { Meter } from './meter.js'
import type { Plan } from './plan.js'
import { endOfEvents, endOfQuiet } from './quiet-events.js'
import type { ReplyReader } from './reply-reader.js'

/** Events at the start that are always read, because they name the model and the reply. So are those after the last usage. */
const firstEvents = 2
/** Shorter whole events have no finish reason. */
const shortBytes = 24
/** How many of the newest skipped events are read to find the end of a stream, because the last one may say nothing. */
const lastEvents = 3

/** Whole events of one piece that were skipped. */
interface Run {
  bytes: Buffer | null
  from: number
  to: number
}

function noRun (): Run {
  return { bytes: null, from: 0, to: 0 }
}

/** Called for each event, or run of skipped events, with its end in the newest piece. */
type OnEvent = (end: number, isExtra: boolean) => void

/**
 * Reads an event stream. Most events are text and say nothing about usage: a run of whole events without the protocol's
 * sign of usage is skipped with a native search. Every other byte goes through the event reader and the scanner.
 */
export class EventStreamReader implements ReplyReader {
  broken = false
  readonly #plan: Plan
  readonly #meter: Meter
  readonly #scanner: JsonScanner
  readonly #events: EventReader
  #first = firstEvents
  /** The newest skipped events: the finish reason of a chat is in one of the last before its usage. */
  #newer = noRun()
  #older = noRun()
  /** How often events were skipped since one was read. */
  #passedSince = 0

  constructor (plan: Plan, meter: Meter) {
    this.#plan = plan
    this.#meter = meter
    this.#scanner = new JsonScanner(plan.search)
    this.#events = new EventReader(this.#scanner)
  }

  get overflow (): boolean {
    return this.#scanner.overflow
  }

  get whole (): boolean {
    return this.#meter.complete || this.#meter.ended || this.#plan.rules.ending === null
  }

  /** True if no event has ended, or not even begun; comments do not count. */
  isSilent (mayHaveBegun: boolean): boolean {
    return this.#first === firstEvents && (mayHaveBegun || this.#events.idle)
  }

  get failing (): boolean {
    return this.#scanner.first !== undefined && this.#meter.fails(this.#scanner.found, this.#scanner.openSlot)
  }

  /** True if the current event may still turn out to be the extra one. */
  get undecided (): boolean {
    return !(Number(this.#scanner.found[this.#plan.slots.listed]) > 0)
  }

  /** True between events, if a line feed at the start of the next piece still belongs to this one. */
  get atHalfEnd (): boolean {
    return this.#events.idle && this.#events.afterReturn
  }

  /** Skips a piece if it is whole events without usage; true if it did. */
  passByAll (chunk: Buffer): boolean {
    return this.#passBy(chunk, 0, true) === chunk.length
  }

  read (chunk: Buffer, onEvent?: OnEvent): void {
    let at = 0
    while (at < chunk.length) {
      const passed = this.#passBy(chunk, at)
      if (passed > at) {
        onEvent?.(passed, false)
        at = passed
        continue
      }
      const end = this.#events.next(chunk, at)
      if (end === -1) return
      const isExtra = this.#endEvent()
      onEvent?.(end, isExtra)
      at = end
    }
  }

  /** Takes a last event that no blank line ended. */
  end (): boolean {
    const isExtra = this.#endEvent()
    // A stream that failed says so in its last event.
    this.#readPassed(true)
    return isExtra
  }

  /** Returns whether the event was the extra one, asked for on the caller's behalf. */
  #endEvent (): boolean {
    const scanner = this.#scanner
    const meter = this.#meter
    if (scanner.first === undefined) return false
    this.#first -= 1
    this.#passedSince = 0
    // A choice follows the usage, which was that of one step or one answer, and not the last.
    if (this.#first === Infinity && !this.undecided) meter.complete = false
    if (scanner.done) meter.take(scanner.found)
    else this.broken ||= scanner.first === openObject
    // `[DONE]`, the one event that is no object.
    meter.complete ||= scanner.first === openArray
    const isExtra = scanner.done && meter.isExtra
    const hasUsage = scanner.done && meter.hasUsage
    scanner.reset()
    if (hasUsage) this.#readUsageEnd(isExtra)
    return isExtra
  }

  /** After a finish reason and its usage, all is read, for callers that leave before the end. `isLast`: it has no choice. */
  #readUsageEnd (isLast: boolean): void {
    const meter = this.#meter
    this.#readPassed(meter.finishReason === null)
    if (meter.finishReason === null) return
    this.#first = Infinity
    meter.complete ||= isLast
  }

  /** Reads the last skipped events, if something is still looked for. */
  #readPassed (isWanted: boolean): void {
    const newer = this.#newer
    const older = this.#older
    const passedSince = this.#passedSince
    const { ended } = this.#meter
    this.#newer = noRun()
    this.#older = noRun()
    if (!isWanted) return
    keepLast(older, keepLast(newer, lastEvents))
    this.#readRun(older)
    // Events that were read later decide.
    if (passedSince < 2) this.#meter.ended ||= ended
    this.#readRun(newer)
    if (passedSince < 1) this.#meter.ended ||= ended
  }

  #readRun ({ bytes, from, to }: Run): void {
    if (bytes === null) return
    const events = new EventReader(this.#scanner)
    for (let at = from; at < to;) {
      at = events.next(bytes, at)
      this.#endEvent()
    }
  }

  /** Returns the offset up to which `chunk` holds whole events that say nothing about usage, `at` or less for none. */
  #passBy (chunk: Buffer, at: number, allOnly = false): number {
    if (this.#first > 0 || !this.#events.idle || this.#events.afterReturn) return at
    const end = endOfQuiet(chunk, at, this.#plan.signs)
    if (end <= at || (allOnly && end < chunk.length)) return at
    this.#events.skipped()
    if (end - at > shortBytes) this.#keep(chunk, at, end)
    return end
  }

  /** Allocates nothing: it runs for most pieces of each stream. */
  #keep (bytes: Buffer, from: number, to: number): void {
    this.#passedSince += 1
    const run = this.#older
    this.#older = this.#newer
    this.#newer = run
    run.bytes = bytes
    run.from = from
    run.to = to
  }
}

/** Shortens a run to its last events, and returns how many of `most` it lacks. */
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
