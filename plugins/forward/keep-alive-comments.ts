/** A stream of events on its way to a caller. */
export interface OpenStream {
  /** Nothing more can be written to it. */
  readonly isOver: boolean
  /** What its upstream has sent so far. */
  readonly bytes: number
  /** Writes a comment where no event is cut by it and the caller has read everything. */
  readonly comment: () => void
}

/** What a stream had sent when it was last seen to send something, or to get a comment. */
interface Silence {
  readonly bytes: number
  readonly since: number
}

/**
 * Writes comments, which readers of events skip (WHATWG), to callers whose upstream is silent: what stands between cuts connections on
 * which nothing moves, and a model may think for minutes. Checking all streams at intervals costs less than a timer for each piece.
 */
export class KeepAliveComments {
  readonly #afterMs: number
  readonly #streams = new Map<OpenStream, Silence>()
  #looking: NodeJS.Timeout | null = null

  /** 0: none. */
  constructor (afterMs: number) {
    this.#afterMs = afterMs
  }

  follow (stream: OpenStream): void {
    if (this.#afterMs === 0) return
    this.#streams.set(stream, { bytes: stream.bytes, since: performance.now() })
    this.#looking ??= setInterval(() => this.#look(), Math.ceil(this.#afterMs / 4)).unref()
  }

  end (): void {
    if (this.#looking !== null) clearInterval(this.#looking)
  }

  #look (): void {
    const now = performance.now()
    for (const [stream, { bytes, since }] of this.#streams) {
      if (stream.isOver) this.#streams.delete(stream)
      else if (stream.bytes !== bytes) this.#streams.set(stream, { bytes: stream.bytes, since: now })
      else if (now - since >= this.#afterMs) {
        stream.comment()
        this.#streams.set(stream, { bytes, since: now })
      }
    }
  }
}
