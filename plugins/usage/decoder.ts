import type { Transform } from 'node:stream'
import type { Open } from './content-codings.js'
import { readablePart } from './readable-part.js'

/** Decoded bytes that any reply may have, and how many each encoded byte adds. Only a decompression bomb exceeds this ratio. */
const freeBytes = 512 * 1024
const maxRatio = 256
/** Encoded bytes that may wait for the decoder. */
const maxWaitingBytes = 16 * 1024 * 1024
/** A document comes in few pieces. A stream comes in many, and its pieces are not kept: they would be held until it ends. */
const maxKeptPieces = 8
/** Encoded bytes that are decoded at once: few at the start, so that a bomb is noticed before it reaches a mebibyte. */
const sliceBytes = 16 * 1024
const firstSliceBytes = 1024
const firstBytes = 64 * 1024

function sliceAt (encodedBytes: number): number {
  return encodedBytes < firstBytes ? firstSliceBytes : sliceBytes
}

/** Gets what is decoded. `over` is called once, and never before `end`. */
interface DecodedSink {
  read: (chunk: Buffer) => void
  over: (failure: 'too_large' | 'parse_error' | null) => void
}

/**
 * Decodes a copy of a reply while the reply itself goes to the caller. Its memory is bounded, whatever the reply decompresses to: decoded
 * bytes are read and dropped, and a reply beyond the bounds is given up.
 */
export class SideDecoder {
  decodedBytes = 0
  readonly #open: Open
  readonly #sink: DecodedSink
  #stream: Transform | null = null
  #failure: 'too_large' | 'parse_error' | null = null
  #receivedBytes = 0
  /** The start of the reply, until the decoder has passed it, or it turns out to be a stream. */
  #kept: Buffer[] | null = []
  #encodedBytes = 0
  #isClosed = false
  #isEnded = false

  constructor (open: Open, sink: DecodedSink) {
    this.#open = open
    this.#sink = sink
  }

  push (chunk: Buffer): void {
    const stream = this.#stream ?? this.#start(chunk.readUInt8(0))
    this.#keep(chunk)
    let rest = chunk
    while (rest.length > 0 && this.#failure === null) {
      const slice = rest.subarray(0, sliceAt(this.#receivedBytes))
      this.#receivedBytes += slice.length
      stream.write(slice, (error) => this.#passed(slice, error))
      rest = rest.subarray(slice.length)
    }
    if (stream.writableLength > maxWaitingBytes) this.#giveUp(stream)
  }

  end (): void {
    this.#isEnded = true
    if (this.#stream === null || this.#isClosed) this.#sink.over(this.#failure)
    else this.#stream.end()
  }

  #start (first: number): Transform {
    const stream = this.#open(first)
    stream.on('data', (decoded: Buffer) => this.#decoded(stream, decoded))
    stream.on('error', () => {
      this.#failure ??= 'parse_error'
      this.#readAgain()
    })
    stream.on('close', () => {
      this.#isClosed = true
      if (this.#isEnded) this.#sink.over(this.#failure)
    })
    this.#stream = stream
    return stream
  }

  /** Keeps the start only: any amount of junk may follow a reply. */
  #keep (chunk: Buffer): void {
    const room = firstBytes - this.#receivedBytes
    if (this.#kept === null || room <= 0) return
    this.#kept.push(chunk.subarray(0, room))
    if (this.#kept.length > maxKeptPieces) this.#kept = null
  }

  #passed (slice: Buffer, error: Error | null | undefined): void {
    if (error instanceof Error) return
    this.#encodedBytes += slice.length
    if (this.#encodedBytes >= firstBytes) this.#kept = null
  }

  /** Reads what the decoder had not emitted yet of the piece in which it failed. */
  #readAgain (): void {
    if (this.#kept === null) return
    const all = readablePart(Buffer.concat(this.#kept), freeBytes)
    const rest = all.subarray(this.decodedBytes)
    this.#kept = null
    this.decodedBytes += rest.length
    if (rest.length > 0) this.#sink.read(rest)
  }

  #decoded (stream: Transform, chunk: Buffer): void {
    this.decodedBytes += chunk.length
    if (this.decodedBytes > freeBytes + maxRatio * (this.#encodedBytes + sliceAt(this.#encodedBytes))) this.#giveUp(stream)
    else this.#sink.read(chunk)
  }

  #giveUp (stream: Transform): void {
    this.#failure = 'too_large'
    stream.destroy()
  }
}
