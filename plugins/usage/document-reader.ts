import { openArray } from './bytes.js'
import { JsonScanner } from './json-scanner.js'
import type { Meter } from './meter.js'
import type { Plan } from './plan.js'
import type { ReplyReader } from './reply-reader.js'

/** What may stand between documents: white space, line ends, and the frame of an array. */
const between: ReadonlySet<number | undefined> = new Set(Buffer.from(' \t\r\n,[]'))

/**
 * Reads a JSON reply: one document, or the array of documents that a stream without `alt=sse` is, or one document per
 * line. Each is read as it comes and forgotten.
 */
export class DocumentReader implements ReplyReader {
  private readonly meter: Meter
  private readonly scanner: JsonScanner
  private isOpen = false
  private inArray = false

  constructor (plan: Plan, meter: Meter) {
    this.meter = meter
    this.scanner = new JsonScanner(plan.wants)
  }

  get broken (): boolean {
    return this.isOpen
  }

  get overflow (): boolean {
    return this.scanner.overflow
  }

  read (chunk: Buffer): void {
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
