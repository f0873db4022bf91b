import type { Dispatcher } from 'undici'
import { errors } from './undici.js'

/** What hears of a reply as undici's transport tells it. */
export type ReplyHandler = Required<Pick<Dispatcher.DispatchHandler, 'onConnect' | 'onHeaders' | 'onData' | 'onComplete' | 'onError'>> & {
  /** It has its place, and waits for its upstream from now on. */
  placed?: () => void
  /** Set where it has to wait for its place: to be called once it wants none any more. */
  leaveQueue?: (() => void) | null
}

/** A handler whose request has one of the places of its upstream until the transport is done with it. */
export class PlacedHandler implements ReplyHandler {
  readonly #handler: ReplyHandler
  readonly #free: () => void
  #status = 0

  constructor (handler: ReplyHandler, free: () => void) {
    this.#handler = handler
    this.#free = free
  }

  onConnect (cancel: (error?: Error) => void): void {
    this.#handler.onConnect(cancel)
  }

  onHeaders (statusCode: number, headers: Buffer[], resume: () => void, statusText: string): boolean {
    this.#status = statusCode
    return this.#handler.onHeaders(statusCode, headers, resume, statusText)
  }

  onData (chunk: Buffer): boolean {
    return this.#handler.onData(chunk)
  }

  onComplete (trailers: string[] | null): void {
    this.#handler.onComplete(trailers)
    this.#free()
  }

  onError (error: Error): void {
    // A 304 may tell the length of what it does not bring (RFC 9110 8.6), which undici takes for cut.
    if (this.#status === 304 && error instanceof errors.ResponseContentLengthMismatchError) this.#handler.onComplete(null)
    else this.#handler.onError(error)
    this.#free()
  }
}
