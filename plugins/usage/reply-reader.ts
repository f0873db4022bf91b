/** Reads the decoded bytes of one reply into a meter. */
export interface ReplyReader {
  read: (chunk: Buffer) => void
  /** Nothing more comes. Returns whether the last, unfinished event is the extra one. */
  end: () => boolean
  /** False for a stream that has not reported its end. */
  readonly whole: boolean
  /** True if the current document reports a failure, as far as it has come. */
  readonly failing: boolean
  /** True if the reply is not in the format that it claims. */
  readonly broken: boolean
  /** True if a usage object was too long to keep. */
  readonly overflow: boolean
}
