import { createWriteStream, fstatSync } from 'node:fs'
import type { Writable } from 'node:stream'
import type { LogStream } from './gateway.js'
import type { LateLine } from './late-lines.js'
import { wholeLines } from './whole-lines.js'

/** Opens the output for the lines, and again after it failed. */
type OpenOutput = () => Writable

const defaultMaxBytes = 4 * 1024 * 1024
const reopenMs = 1_000

/** A write costs more than several lines. */
const gatherMs = 25
/** Maximum number of late lines that become text in one go, so that it delays nobody for long. */
const maxLate = 128
const droppedText = 'log lines were dropped: nobody took them, or they could not be made'
/** What lines of the level `info` begin with. */
const infoStart = '{"level":30,'

/**
 * Takes log lines for an output that may block: a pipe that nobody reads, a disk that is full or stalls. Nobody waits for it, and at most
 * `maxBytes` wait in memory; further lines are dropped, counted, and reported in the next line. Lines of 25 ms are one write; a line above
 * `info` sends those before it at once.
 */
export class LogOutput implements LogStream {
  readonly #open: OpenOutput
  readonly #maxBytes: number
  #out: Writable | null = null
  #reopenAt = -Infinity
  #unreported = 0
  #onDrop: () => void = () => {}
  /** Lines that are not text yet. */
  #late: LateLine[] = []
  /** Lines that are not written yet. */
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

  /** Resolves with true once all lines are written, and what others wrote to the same output before; with false after `timeoutMs`. */
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
    // Lines logged while texts were made wait for the next time.
    this.#timer = this.#late.length === 0 ? undefined : setTimeout(this.#send, gatherMs)
    const lines = this.#lines
    if (lines === 0) return
    const text = this.#text
    this.#text = ''
    this.#lines = 0
    const out = this.#output()
    if (out === null) this.#dropped(lines)
    else out.write(this.#droppedLine() + text, (error) => { if (error) this.#failed(lines) })
  }

  /** Each line comes back through `write`; one that cannot be made is dropped. */
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

  /** A line that reports the dropped ones. */
  #droppedLine (): string {
    const dropped = this.#unreported
    this.#unreported = 0
    if (dropped === 0) return ''
    return `${JSON.stringify({ level: 40, time: Date.now(), dropped, msg: droppedText })}\n`
  }

  /** Null if it failed a moment ago. */
  #output (): Writable | null {
    if (this.#out !== null || Date.now() < this.#reopenAt) return this.#out
    const out = this.#open()
    // An unhandled error ends the process; each write gets it, too. Standard output is the same object each time.
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
    this.#unreported += lines
    for (let line = 0; line < lines; line += 1) this.#onDrop()
  }
}

/**
 * A file is written off the event loop, which a disk would block; Node's own standard output does so only for pipes. `isShared`: other
 * processes write to it, too.
 */
export function outputOf (stream: Writable & { readonly fd: number }, isShared = false): OpenOutput {
  // As big integers: Node's `realpathSync` reads what the plain form left behind, takes a pipe for the end of any path that it resolves
  // next, and modules behind symbolic links (as pnpm has them) are not found (lib/fs.js of Node 20 to 24).
  if (!fstatSync(stream.fd, { bigint: true }).isFile()) return isShared ? () => wholeLines(stream) : () => stream
  return () => createWriteStream('', { fd: stream.fd, autoClose: false })
}

interface Pretty {
  readonly default: (options: { readonly destination: Writable, readonly ignore: string, readonly translateTime: string }) => Writable
}

/** Readable lines, for a terminal; null if the package `pino-pretty` is not installed. */
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
