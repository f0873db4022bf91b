import { carriageReturn, colon, lineFeed, space } from '../core/body/bytes.js'

const byteOrderMark = Buffer.from('\uFEFF')
const dataField = Buffer.from('data')
const joint = Buffer.from('\n')

/** States: the next byte belongs to the name of a field, to the value of `data`, or to another value. */
const inName = 0
const inData = 1
const inOther = 2

/** Takes the data of events, piece by piece. */
interface DataSink {
  push: (chunk: Buffer, from: number, to: number) => unknown
}

/**
 * Reads an event stream by the HTML standard (9.2, event streams): lines end in LF, CRLF or CR, a byte order mark
 * may lead, the `data` lines of one event are joined by line feeds. Nothing is kept: data goes to the sink as it comes,
 * so an event may be of any size. Only `data` is read, as providers repeat an event's name in it.
 */
export class EventReader {
  /** True if the last piece ended in a CR that may be half of a CRLF. */
  afterReturn = false
  readonly #sink: DataSink
  #state = inName
  /** How many bytes of the name match `data` so far, -1 once one did not. */
  #matched = 0
  #lineIsEmpty = true
  #eventIsEmpty = true
  /** One space after the colon is no part of the value. */
  #atColon = false
  #marks = 0
  #dataLines = 0
  /** Offset of the next CR in the piece, -1 for none, -2 for not searched yet. */
  #returnAt = -2

  constructor (sink: DataSink) {
    this.#sink = sink
  }

  /** True between events. */
  get idle (): boolean {
    return this.#eventIsEmpty
  }

  /** To be called after whole events were skipped: the next call begins within the piece, at the start of an event. */
  skipped (): void {
    this.#returnAt = -2
  }

  /** Reads on to the end of the current event. Returns the offset after its blank line, or -1 where the piece ended first. */
  next (chunk: Buffer, at: number): number {
    if (at === 0) this.#returnAt = -2
    let from = this.afterReturn && chunk[at] === lineFeed ? at + 1 : at
    this.afterReturn = false
    while (from < chunk.length) {
      if (this.#state !== inName) {
        from = this.#readValue(chunk, from)
        continue
      }
      const byte = chunk[from]
      from += 1
      if (byte === lineFeed || byte === carriageReturn) {
        this.#marks = byteOrderMark.length
        from = this.#afterEnd(chunk, from)
        if (this.#lineIsEmpty) return this.#endEvent(from)
        if (this.#matched === dataField.length) this.#startData()
        this.#endLine()
      } else this.#readName(byte)
    }
    return -1
  }

  #readName (byte: number | undefined): void {
    if (byte === byteOrderMark[this.#marks]) {
      this.#marks += 1
      return
    }
    this.#marks = byteOrderMark.length
    this.#lineIsEmpty = false
    this.#eventIsEmpty = false
    if (byte !== colon) {
      this.#matched = byte === dataField[this.#matched] ? this.#matched + 1 : -1
      return
    }
    this.#atColon = true
    this.#state = this.#matched === dataField.length ? inData : inOther
    if (this.#state === inData) this.#startData()
  }

  #startData (): void {
    if (this.#dataLines > 0) this.#sink.push(joint, 0, 1)
    this.#dataLines += 1
  }

  #readValue (chunk: Buffer, at: number): number {
    const from = this.#atColon && chunk[at] === space ? at + 1 : at
    this.#atColon = false
    const end = this.#lineEnd(chunk, from)
    if (this.#state === inData) this.#sink.push(chunk, from, end)
    if (end === chunk.length) return end
    this.#endLine()
    return this.#afterEnd(chunk, end + 1)
  }

  #lineEnd (chunk: Buffer, from: number): number {
    const feed = chunk.indexOf(lineFeed, from)
    const end = feed === -1 ? chunk.length : feed
    if (this.#returnAt !== -1 && this.#returnAt < from) this.#returnAt = chunk.indexOf(carriageReturn, from)
    return this.#returnAt === -1 ? end : Math.min(this.#returnAt, end)
  }

  /** `at` follows one byte of a line's end. Skips the second byte of a CRLF. */
  #afterEnd (chunk: Buffer, at: number): number {
    if (chunk[at - 1] !== carriageReturn) return at
    this.afterReturn = at === chunk.length
    return chunk[at] === lineFeed ? at + 1 : at
  }

  #endLine (): void {
    this.#state = inName
    this.#matched = 0
    this.#lineIsEmpty = true
  }

  #endEvent (at: number): number {
    this.#eventIsEmpty = true
    this.#dataLines = 0
    return at
  }
}
