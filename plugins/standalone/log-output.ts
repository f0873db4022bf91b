import { createWriteStream, fstatSync } from 'node:fs'
import type { Writable } from 'node:stream'
import type { LogStream } from './gateway.js'
import type { LateLine } from './late-lines.js'
import { wholeLines } from './whole-lines.js'

/** Opens what the lines go to, again where it failed. */
export type OpenOutput = () => Writable

const defaultMaxBytes = 4 * 1024 * 1024
const reopenMs = 1_000

/** A write costs more than several lines. */
const gatherMs = 25
/** As many late lines become text at most in one go, so that nobody waits for it for long. */
const maxLate = 128
const droppedText = 'log lines were dropped: nobody took them, or they could not be made'
/** What lines of the level `info` begin with. */
const infoStart = '{"level":30,'

/**
 * Takes log lines for an output that may stand still: a pipe that nobody reads, a disk that is full or stalls. Nobody waits
 * for it and no more than `maxBytes` wait in memory; what comes then is dropped, counted, and told in the first line after.
 * Lines of 25 ms are one write; what is more than information takes those before it along at once.
 */
export class LogOutput implements LogStream {
  readonly #open: OpenOutput
  readonly #maxBytes: number
  #out: Writable | null = null
  #reopenAt = -Infinity
  #untold = 0
  #onDrop: () => void = () => {}
  /** That are no text yet. */
  #late: LateLine[] = []
  /** That are not written yet. */
  #text = ''
  #lines = 0
  #timer: NodeJS.Timeout | undefined

  constructor (open: OpenOutput, maxBytes = defaultMaxBytes) {
    this.#open = open
    this.#maxBytes = maxBytes
  }

  /** Called for each line that is dropped; one listener at a time. */
  onDrop (listener: () => void): void {
    this.#onDrop = listener
  }

  /** Its text is made with that of others, and before any line after it. */
  late (line: LateLine): void {
    this.#timer ??= setTimeout(this.#send, gatherMs)
    if (this.#late.push(line) === maxLate) this.#makeText()
  }

  write (line: string): void {
    this.#makeText()
    const out = this.#output()
    if (out === null || out.writableLength + this.#text.length > this.#maxBytes) {
      this.#dropped(1)
      return
    }
    this.#timer ??= setTimeout(this.#send, gatherMs)
    this.#text += line
    this.#lines += 1
    if (!line.startsWith(infoStart)) this.#send()
  }

  /** Resolves with true once all lines are out, and what others wrote to the same output before, or with false after `timeoutMs`. */
  async flush (timeoutMs: number): Promise<boolean> {
    this.#send()
    const out = this.#output()
    if (out === null) return true
    return await new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), timeoutMs)
      out.write('', () => {
        clearTimeout(timer)
        resolve(true)
      })
    })
  }

  readonly #send = (): void => {
    this.#makeText()
    clearTimeout(this.#timer)
    // What was told while texts were made waits for the next time.
    this.#timer = this.#late.length === 0 ? undefined : setTimeout(this.#send, gatherMs)
    const lines = this.#lines
    if (lines === 0) return
    const text = this.#text
    this.#text = ''
    this.#lines = 0
    const out = this.#output()
    if (out === null) this.#dropped(lines)
    else out.write(this.#told() + text, (error) => { if (error) this.#failed(lines) })
  }

  /** Each comes back through `write`; one that cannot be made is dropped. */
  #makeText (): void {
    if (this.#late.length === 0) return
    const late = this.#late
    this.#late = []
    for (const line of late) {
      try {
        line.write()
      } catch {
        this.#dropped(1)
      }
    }
  }

  /** A line for those that were dropped. */
  #told (): string {
    const dropped = this.#untold
    this.#untold = 0
    if (dropped === 0) return ''
    return `${JSON.stringify({ level: 40, time: Date.now(), dropped, msg: droppedText })}\n`
  }

  /** Null where it failed a moment ago. */
  #output (): Writable | null {
    if (this.#out !== null || Date.now() < this.#reopenAt) return this.#out
    const out = this.#open()
    // An error that nobody hears ends the process; each write is told of it, too. Standard output is the same one each time.
    if (out.listenerCount('error') === 0) out.on('error', () => {})
    this.#out = out
    return out
  }

  #failed (lines: number): void {
    this.#out = null
    this.#reopenAt = Date.now() + reopenMs
    this.#dropped(lines)
  }

  #dropped (lines: number): void {
    this.#untold += lines
    for (let line = 0; line < lines; line += 1) this.#onDrop()
  }
}

/**
 * A file's output is written off the loop, which a disk would hold; Node's own standard output does so for pipes alone. `isShared`: other
 * processes write to it, too.
 */
export function outputOf (stream: Writable & { readonly fd: number }, isShared = false): OpenOutput {
  // As big integers: Node's `realpathSync` looks at what the plain form left behind, takes a pipe for the end of any path that it
  // resolves next, and modules behind symbolic links (as pnpm has them) are not found (lib/fs.js of Node 20 to 24).
  if (!fstatSync(stream.fd, { bigint: true }).isFile()) return isShared ? () => wholeLines(stream) : () => stream
  return () => createWriteStream('', { fd: stream.fd, autoClose: false })
}

interface Pretty {
  readonly default: (options: { readonly destination: Writable, readonly ignore: string, readonly translateTime: string }) => Writable
}

/** Plain lines, for who reads along in a terminal; null where the package `pino-pretty` is not installed. */
export async function plainLines (
  out: Writable, load: () => Promise<Pretty> = async () => await import('pino-pretty')
): Promise<OpenOutput | null> {
  try {
    const { default: pretty } = await load()
    return () => pretty({ destination: out, ignore: 'pid,hostname', translateTime: 'SYS:HH:MM:ss' })
  } catch {
    return null
  }
}
