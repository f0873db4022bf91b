import type { ServerResponse } from 'node:http'
import { constants } from 'node:http2'
import { closeStream, resetOld } from '../core/reply/cut-reply.js'
import type { Gateway } from '../core/gateway.js'
import type { ModelCall } from '../core/call/model-call.js'

/** Whose reply it is. */
interface Followed {
  readonly gateway: Gateway
  readonly llm: ModelCall
  readonly reply: { readonly raw: ServerResponse }
}

/** What a caller had taken of its reply when it last took something. */
interface Standstill {
  readonly taken: number
  readonly since: number
}

/**
 * Cuts callers that take nothing of their reply for `maxMs`: what they hold would be theirs for ever, as nothing else of a
 * reply that waits for its reader has a time. A look at all of them now and then costs a request less than timers of its own.
 */
export class SlowReaders {
  readonly #maxMs: number
  readonly #replies = new Map<ModelCall, ServerResponse>()
  readonly #standing = new Map<ModelCall, Standstill>()
  readonly #gateways = new WeakSet<Gateway>()
  #looking: NodeJS.Timeout | null = null

  /** 0: nobody is cut. */
  constructor (maxMs: number) {
    this.#maxMs = maxMs
  }

  /** A reply that was handed over. One whose caller has taken all of it at once, or has left, is let be: nobody would forget it again. */
  follow ({ gateway, llm, reply }: Followed): void {
    if (llm.settled || this.#maxMs === 0 || (reply.raw.writableEnded && reply.raw.writableLength === 0)) return
    if (!this.#gateways.has(gateway)) {
      this.#gateways.add(gateway)
      gateway.onSettled((settled) => this.#forget(settled))
    }
    this.#replies.set(llm, reply.raw)
    this.#looking ??= setInterval(() => this.#look(), Math.ceil(this.#maxMs / 4)).unref()
  }

  end (): void {
    if (this.#looking !== null) clearInterval(this.#looking)
  }

  #forget (llm: ModelCall): void {
    this.#replies.delete(llm)
    this.#standing.delete(llm)
  }

  #look (): void {
    const now = performance.now()
    for (const [llm, raw] of this.#replies) {
      const waiting = raw.writableLength
      // Over a connection that brings several replies it may be another one's turn.
      if (waiting === 0 || raw.socket === null) this.#standing.delete(llm)
      else if (this.#stands(llm, llm.upstreamReply.bytes - waiting, now)) cut(llm, raw)
    }
  }

  #stands (llm: ModelCall, taken: number, now: number): boolean {
    const standstill = this.#standing.get(llm)
    if (standstill !== undefined && taken <= standstill.taken) return now - standstill.since >= this.#maxMs
    this.#standing.set(llm, { taken, since: now })
    return false
  }
}

/** Node tells of a reply whose last byte was written, if not taken, that it is finished. */
function cut (llm: ModelCall, raw: ServerResponse): void {
  llm.abortedBy ??= 'client'
  // A stream of HTTP/2 that is destroyed ends as a whole one does, for a caller that goes on reading after all.
  if (closeStream(raw, constants.NGHTTP2_INTERNAL_ERROR)) return
  resetOld(raw.req)
  raw.destroy()
}
