import { closeObject, openArray, openObject } from './bytes.js'
import { parseJson } from './captured-value.js'
import { JsonScanner } from './json-scanner.js'
import type { Meter } from './meter.js'
import type { Plan } from './plan.js'
import type { ReplyReader } from './reply-reader.js'
import { isObject } from './usage-object.js'
import { findIn } from './wants.js'

/** Up to here, parsing a whole document costs less than looking for its few wanted values. */
const maxParsedBytes = 4 * 1024

/** What may stand between documents: white space, line ends, and the frame of an array. */
const between: ReadonlySet<number | undefined> = new Set(Buffer.from(' \t\r\n,[]'))

/**
 * Reads a JSON reply: one document, or the array of documents that a stream without `alt=sse` is, or one document per
 * line. Each is read as it comes and forgotten.
 */
export class DocumentReader implements ReplyReader {
  private readonly plan: Plan
  private readonly meter: Meter
  private scannerInUse: JsonScanner | null = null
  private isOpen = false
  private inArray = false

  constructor (plan: Plan, meter: Meter) {
    this.plan = plan
    this.meter = meter
  }

  private get scanner (): JsonScanner {
    this.scannerInUse ??= new JsonScanner(this.plan.wants)
    return this.scannerInUse
  }

  get broken (): boolean {
    return this.isOpen
  }

  get overflow (): boolean {
    return this.scannerInUse?.overflow === true
  }

  read (chunk: Buffer): void {
    if (!this.isOpen && !this.inArray && this.readWhole(chunk)) return
    let at = 0
    while (at < chunk.length) {
      if (!this.isOpen && between.has(chunk[at])) {
        this.inArray ||= chunk[at] === openArray
        at += 1
        continue
      }
      this.isOpen = true
      const end = this.scanner.push(chunk, at, chunk.length)
      if (!this.scanner.done) return
      this.endDocument()
      at = Math.max(end, at + 1)
    }
  }

  /** A small reply that came in one piece. False for any other. */
  private readWhole (chunk: Buffer): boolean {
    if (chunk.length > maxParsedBytes || chunk[0] !== openObject || chunk.at(-1) !== closeObject) return false
    const document = parseJson(chunk.toString())
    if (!isObject(document)) return false
    const found: unknown[] = new Array(this.plan.wants.below.length).fill(undefined)
    findIn(this.plan.wants, document, found)
    this.meter.take(found)
    this.meter.complete = true
    return true
  }

  end (): boolean {
    return false
  }

  private endDocument (): void {
    this.meter.take(this.scanner.found)
    this.scanner.reset()
    this.isOpen = false
    this.meter.complete ||= !this.inArray
  }
}
