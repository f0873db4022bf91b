import { openArray } from '../core/body/bytes.js'
import { JsonScanner } from './json-scanner.js'
import type { Meter } from './meter.js'
import type { Plan } from './plan.js'
import type { ReplyReader } from './reply-reader.js'
import { readWhole } from './whole-document.js'

/** What may be between documents: white space, line ends, the frame of an array, and before the first a byte order mark. */
const between: ReadonlySet<number | undefined> = new Set(Buffer.from(' \t\r\n,[]\uFEFF'))

/**
 * Reads a JSON reply: one document, or an array of documents, as a stream without `alt=sse` is, or one document per
 * line. Each is read as it comes, and nothing of it is kept.
 */
export class DocumentReader implements ReplyReader {
  readonly #plan: Plan
  readonly #meter: Meter
  /** Null while the reply was only one small document that came whole. */
  #scanner: JsonScanner | null = null
  #isFirst = true
  #isOpen = false
  #inArray = false

  constructor (plan: Plan, meter: Meter) {
    this.#plan = plan
    this.#meter = meter
  }

  get broken (): boolean {
    return this.#isOpen
  }

  get whole (): boolean {
    return this.#meter.ended || !this.#inArray || this.#plan.rules.ending?.arrays !== true
  }

  get overflow (): boolean {
    return this.#scanner?.overflow === true
  }

  get failing (): boolean {
    return this.#isOpen && this.#scanner !== null && this.#meter.fails(this.#scanner.found, this.#scanner.openSlot)
  }

  read (chunk: Buffer): void {
    if (!this.#isFirst) {
      this.#scan(chunk)
      return
    }
    this.#isFirst = false
    const found = readWhole(chunk, this.#plan.search)
    if (found === null) {
      this.#scan(chunk)
      return
    }
    this.#meter.take(found)
    this.#meter.complete = true
  }

  #scan (chunk: Buffer): void {
    const scanner = this.#scanner ??= new JsonScanner(this.#plan.search)
    let at = 0
    while (at < chunk.length) {
      if (!this.#isOpen && between.has(chunk[at])) {
        this.#inArray ||= chunk[at] === openArray
        at += 1
        continue
      }
      this.#isOpen = true
      const end = scanner.push(chunk, at, chunk.length)
      if (!scanner.done) return
      this.#endDocument(scanner)
      at = Math.max(end, at + 1)
    }
  }

  end (): boolean {
    return false
  }

  #endDocument (scanner: JsonScanner): void {
    this.#meter.take(scanner.found)
    scanner.reset()
    this.#isOpen = false
    this.#meter.complete ||= !this.#inArray
  }
}
