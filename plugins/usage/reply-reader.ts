/** Reads the decoded bytes of one reply into a meter. */
export interface ReplyReader {
  read: (chunk: Buffer) => void
  /** Nothing more comes. Returns whether what was still being read is the event that the caller did not ask for. */
  end: () => boolean
  /** False where it is a stream that has not told its end. */
  readonly whole: boolean
  /** True where the document that is being read tells of a failure, as far as it has come. */
  readonly failing: boolean
  /** True where what came is not what the reply said it is. */
  readonly broken: boolean
  /** True where a usage object was larger than is kept. */
  readonly overflow: boolean
}
