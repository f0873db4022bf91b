/** Bytes of one value beyond which it is given up: a usage object with a hundred iterations is half of this. */
const maxValueBytes = 64 * 1024

/** Collects the bytes of one JSON value that may arrive in pieces. Never keeps more than its bound. */
export class CapturedValue {
  /** Where the value, or what is left of it, starts and ends in the newest piece. */
  start = 0
  end = 0
  private parts: Buffer[] = []
  private size = 0

  begin (at: number): void {
    this.start = at
    this.parts = []
    this.size = 0
  }

  /** The piece ends within the value. Bytes are copied: the piece belongs to someone else. */
  keep (chunk: Buffer, to: number): void {
    const bytes = to - this.start
    if (this.size + bytes <= maxValueBytes) this.parts.push(Buffer.from(chunk.subarray(this.start, to)))
    else this.parts = []
    this.size += bytes
  }

  /** The whole value as JSON has it, null for null, or undefined where it is too large or no JSON. */
  finish (chunk: Buffer, to: number): unknown {
    this.end = to
    if (this.tooLarge) return undefined
    const text = this.size === 0
      ? chunk.toString('utf8', this.start, to)
      : Buffer.concat([...this.parts, chunk.subarray(this.start, to)]).toString()
    this.parts = []
    return parseJson(text)
  }

  get tooLarge (): boolean {
    return this.size + this.end - this.start > maxValueBytes
  }
}

/** `JSON.parse`, undefined for what is none. Names and nulls, the most of what is read, take a shorter way. */
export function parseJson (text: string): unknown {
  if (text === 'null') return null
  if (text.startsWith('"') && text.endsWith('"') && !text.includes('\\')) return text.slice(1, -1)
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
