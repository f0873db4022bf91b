/** One keep-alive connection of a caller: sends an exchange, times it, checks it. */
import { connect, type Socket } from 'node:net'
import { ReplyReader } from './reply-reader.js'

export interface Exchange {
  readonly bytes: Buffer
  readonly status: number
  /** The body that must come back; null where any will do. */
  readonly reply: Buffer | null
}

/** Milliseconds of `performance.now()`. */
export interface Timing {
  readonly sentAt: number
  readonly firstBodyAt: number
  readonly endedAt: number
  readonly bodyReads: number
}

export type Done = (timing: Timing, connection: Connection) => void

/** Reads of all connections land in one buffer: each is dealt with before the next. */
const shared = Buffer.alloc(256 * 1024)

export class Connection {
  readonly #socket: Socket
  readonly #reader = new ReplyReader()
  readonly #fail: (error: Error) => void
  #exchange: Exchange | null = null
  #done: Done | null = null
  #sentAt = 0
  #firstBodyAt = 0

  constructor (port: number, host: string, fail: (error: Error) => void) {
    this.#fail = fail
    this.#socket = connect({
      port,
      host,
      noDelay: true,
      onread: { buffer: shared, callback: (length, buffer) => this.#read(Buffer.from(buffer.buffer, buffer.byteOffset, length)) },
    })
    this.#socket.on('error', error => { if (this.#exchange !== null) fail(error) })
    this.#socket.on(
      'close', () => { if (this.#exchange !== null) fail(new Error('the connection was closed before the reply was complete')) }
    )
  }

  opened (): Promise<void> {
    if (!this.#socket.connecting) return Promise.resolve()
    return new Promise((resolve, reject) => {
      this.#socket.once('connect', resolve)
      this.#socket.once('error', reject)
    })
  }

  get alive (): boolean {
    return this.#socket.readyState === 'open'
  }

  /** Bytes of the current reply's body that have come. */
  get bodyBytes (): number {
    return this.#reader.bodyBytes
  }

  send (exchange: Exchange, done: Done): void {
    this.#exchange = exchange
    this.#done = done
    this.#reader.expect(exchange.reply)
    this.#firstBodyAt = 0
    this.#sentAt = performance.now()
    this.#socket.write(exchange.bytes)
  }

  close (): void {
    this.#exchange = null
    this.#socket.destroy()
  }

  #read (bytes: Buffer): boolean {
    const exchange = this.#exchange
    if (exchange === null) return true
    try {
      const complete = this.#reader.push(bytes)
      if (this.#reader.status !== 0 && this.#reader.status !== exchange.status) {
        throw new Error(`status ${this.#reader.status} instead of ${exchange.status}: ${bytes.toString('utf8').slice(-300)}`)
      }
      if (this.#firstBodyAt === 0 && this.#reader.bodyBytes > 0) this.#firstBodyAt = performance.now()
      if (complete) this.#complete()
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error(String(error)))
      this.close()
    }
    return true
  }

  #complete (): void {
    const done = this.#done
    this.#exchange = null
    this.#done = null
    done?.({ sentAt: this.#sentAt, firstBodyAt: this.#firstBodyAt, endedAt: performance.now(), bodyReads: this.#reader.bodyReads }, this)
  }
}
