import type { Dispatcher } from 'undici'
import { errors } from './undici.js'

/** A handler of undici's transport. */
export type ReplyHandler = Required<Pick<Dispatcher.DispatchHandler, 'onConnect' | 'onHeaders' | 'onData' | 'onComplete' | 'onError'>> & {
  /** It has a place in the queue's line, and waits for its upstream from now on. */
  placed?: () => void
  /** Set while it waits for a place; call it to give up waiting. */
  leaveQueue?: (() => void) | null
}

/** Holds one of the places of its upstream until the transport is done with the request. */
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
    // A 304 may state the length of the body that it does not have (RFC 9110 8.6), which undici takes for cut.
    if (this.#status === 304 && error instanceof errors.ResponseContentLengthMismatchError) this.#handler.onComplete(null)
    else this.#handler.onError(error)
    this.#free()
  }
}
