import type { ModelCall } from '../core/call/model-call.js'
import type { AbortSide, ReplyTap, StreamFacts, UsageMissing } from '../core/types.js'
import { isSpace, openArray, openObject } from '../core/body/bytes.js'
import { isEventStream } from '../core/reply/event-stream.js'
import { openersOf } from './content-codings.js'
import { SideDecoder } from './decoder.js'
import { DocumentReader } from './document-reader.js'
import { EventSieve } from './event-sieve.js'
import { EventStreamReader } from './event-stream-reader.js'
import { Meter, type Told } from './meter.js'
import type { Plan } from './plan.js'

/** A byte order mark: its first byte, and how many it has. */
const markByte = 0xef
const markBytes = 3
/** First bytes of an event stream: of `data`, `event`, `id`, `retry`, a comment, or half a byte order mark. */
const eventBytes: ReadonlySet<number> = new Set(Buffer.from('deir:\uFEFF'))

interface TapOptions {
  /** Usage was asked for on the caller's behalf: the event that brings it is removed. */
  readonly takeOut: boolean
  /** Null if its usage is recorded. Otherwise another request is metered for this reply, whose ending alone is judged. */
  readonly told: Told | null
  /** The reading of a compressed reply may end after the reply: settlement waits from `hold` to `release`. */
  readonly hold: (llm: ModelCall) => void
  readonly release: (llm: ModelCall) => void
}

type Headers = Readonly<Record<string, unknown>>

/**
 * Watches one successful reply pass, and records its usage in `llm` when it ended or broke off. Its first byte chooses
 * the reader, because some upstreams send a wrong content type; that decides only if the byte does not.
 */
export class UsageTap implements ReplyTap {
  readonly #llm: ModelCall
  readonly #plan: Plan
  readonly #options: TapOptions
  readonly #meter: Meter
  readonly #headers: Headers
  readonly #decoder: SideDecoder | null
  /** The start of a possible byte order mark, held back until it is clear what follows. */
  #halfMark: Buffer | null = null
  #innermost: SideDecoder | null = null
  #reader: EventStreamReader | DocumentReader | null = null
  #sieve: EventSieve | null = null
  /** Why there is no usage, if that is known before the reader is asked. */
  #failure: UsageMissing | null = null
  #isOver = false
  #isWhole = true
  /** The reading of compressed bytes has ended. */
  #isRead = false
  #onRead: ((isWhole: boolean) => void) | null = null
  #reading: Promise<boolean> | null = null

  constructor (llm: ModelCall, plan: Plan, headers: Headers, options: TapOptions) {
    this.#llm = llm
    this.#plan = plan
    this.#options = options
    this.#meter = new Meter(plan)
    this.#headers = headers
    this.#decoder = this.#openDecoder(textOf(headers['content-encoding']))
  }

  get complete (): boolean {
    return this.#options.told !== null || this.lastEventSeen
  }

  get lastEventSeen (): boolean {
    return this.#meter.complete
  }

  get failed (): boolean {
    return this.#meter.failed || this.#reader?.failing === true
  }

  get streamFacts (): StreamFacts {
    return this.#meter.streamFacts
  }

  /** Waits only for what may be a stream. */
  get whole (): boolean | Promise<boolean> {
    if (this.#isRead || !this.#mayBeStream) return this.#isWhole
    this.#reading ??= new Promise((resolve) => { this.#onRead = resolve })
    return this.#reading
  }

  push (chunk: Buffer): Buffer | null {
    if (chunk.length === 0 || this.#failure !== null) return chunk
    if (this.#decoder === null) return this.#read(chunk)
    this.#decoder.push(chunk)
    return chunk
  }

  end (): Buffer | null {
    return this.#over(null)
  }

  abort (side: AbortSide): void {
    this.#over(side === 'client' ? 'client_abort' : 'upstream_abort')
  }

  /** The decoder that gets the bytes as they come. The output of the innermost one is read. */
  #openDecoder (coding: string): SideDecoder | null {
    const openers = openersOf(coding)
    if (openers === null) this.#failure = 'parse_error'
    const [inner, outer] = openers ?? []
    if (inner === undefined) return null
    const last = new SideDecoder(inner, {
      read: (chunk) => { this.#read(chunk) },
      over: (failure) => {
        this.#failure ??= failure
        this.#settle()
        this.#options.release(this.#llm)
      },
    })
    this.#innermost = last
    if (outer === undefined) return last
    return new SideDecoder(outer, {
      read: (chunk) => { last.push(chunk) },
      over: (failure) => {
        this.#failure ??= failure
        last.end()
      },
    })
  }

  #read (piece: Buffer): Buffer | null {
    const chunk = this.#halfMark === null ? piece : Buffer.concat([this.#halfMark, piece])
    this.#halfMark = this.#reader === null && chunk.length < markBytes && chunk[0] === markByte ? chunk : null
    if (this.#halfMark !== null) return null
    this.#reader ??= this.#openReader(chunk)
    if (this.#sieve !== null) return this.#sieve.push(chunk)
    this.#reader?.read(chunk)
    return chunk
  }

  #openReader (chunk: Buffer): EventStreamReader | DocumentReader | null {
    let at = 0
    while (isSpace(chunk[at])) at += 1
    // Some servers send a byte order mark before JSON, too, in a piece of its own.
    if (chunk[at] === markByte && chunk.length >= at + markBytes) at += markBytes
    const first = chunk[at]
    if (first === undefined) return null
    if (first === openObject || first === openArray || !this.#looksLikeEvents(first)) {
      return new DocumentReader(this.#plan, this.#meter)
    }
    const reader = new EventStreamReader(this.#plan, this.#meter)
    if (this.#options.takeOut) this.#sieve = new EventSieve(reader)
    return reader
  }

  #looksLikeEvents (first: number): boolean {
    return eventBytes.has(first) || isEventStream(this.#headers)
  }

  get #mayBeStream (): boolean {
    return this.#llm.stream || isEventStream(this.#headers)
  }

  /** A replayed stream is whole even without events: its caller has all of them. */
  get #cameWhole (): boolean {
    const reader = this.#reader
    const repeats = this.#options.told !== null
    if (reader === null) return repeats || !isEventStream(this.#headers) || this.#plan.rules.ending === null
    // A text such as `rate limited`, labelled as such, only begins as events do.
    const isText = textOf(this.#headers['content-type']) !== '' && !isEventStream(this.#headers)
    return reader.whole || (reader instanceof EventStreamReader && (repeats || isText) && reader.isSilent(isText))
  }

  #over (aborted: UsageMissing | null): Buffer | null {
    if (this.#isOver) return null
    this.#isOver = true
    this.#failure ??= aborted
    if (this.#decoder === null) return this.#settle()
    this.#options.hold(this.#llm)
    this.#decoder.end()
    return null
  }

  #settle (): Buffer | null {
    const reader = this.#reader
    this.#llm.upstreamReply.bytes = Math.max(this.#llm.upstreamReply.bytes, this.#innermost?.decodedBytes ?? 0)
    const isExtra = reader?.end() === true
    this.#isWhole = this.#failure !== null || this.#cameWhole
    const tooLarge = reader?.overflow === true ? 'too_large' : null
    const broken = reader?.broken === true ? 'parse_error' : null
    const cut = this.#isWhole ? null : 'upstream_abort'
    const unread = tooLarge ?? this.#failure ?? cut ?? broken ?? 'no_usage'
    this.#meter.finish(this.#llm, unread, (name) => textOf(this.#headers[name]) || null, this.#options.told)
    this.#isRead = true
    this.#onRead?.(this.#isWhole)
    return this.#sieve === null ? this.#halfMark : this.#sieve.end(isExtra)
  }
}

function textOf (header: unknown): string {
  return header === undefined ? '' : String(header).trim().toLowerCase()
}
