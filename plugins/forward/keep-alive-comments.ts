/** A stream of events on its way to a caller. */
export interface OpenStream {
  /** Nothing more can be written to it. */
  readonly isOver: boolean
  /** What its upstream has sent so far. */
  readonly bytes: number
  /** Writes a comment where no event is cut by it and the caller has read everything. */
  readonly comment: () => void
}

/** What a stream had sent when it was last seen to send something, and how often it was looked at since, or since its last comment. */
interface Silence {
  bytes: number
  looks: number
}

/** One more look may pass before a silence is noticed. */
const looksPerComment = 3

/**
 * Writes comments, which readers of events skip (WHATWG), to callers whose upstream is silent: a model may think for minutes, and proxies
 * and load balancers cut connections on which nothing moves. Checking all streams at intervals costs less than a timer for each piece.
 */
export class KeepAliveComments {
  readonly #withinMs: number
  readonly #streams = new Map<OpenStream, Silence>()
  #looking: NodeJS.Timeout | undefined

  /** 0: none. */
  constructor (withinMs: number) {
    this.#withinMs = withinMs
  }

  follow (stream: OpenStream): void {
    if (this.#withinMs === 0) return
    this.#streams.set(stream, { bytes: stream.bytes, looks: 0 })
    this.#looking ??= setInterval(() => this.#look(), Math.ceil(this.#withinMs / (looksPerComment + 1))).unref()
  }

  end (): void {
    clearInterval(this.#looking)
  }

  #look (): void {
    for (const [stream, silence] of this.#streams) {
      if (stream.isOver) this.#streams.delete(stream)
      else if (stream.bytes !== silence.bytes) Object.assign(silence, { bytes: stream.bytes, looks: 0 })
      else if (++silence.looks === looksPerComment) {
        silence.looks = 0
        stream.comment()
      }
    }
  }
}
