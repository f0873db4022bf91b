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

/** How much of its reply a caller had read when it last read something. */
interface Standstill {
  readonly taken: number
  readonly since: number
}

/**
 * Cuts callers that read nothing of their reply for `maxMs`. Nothing else limits how long a reply waits for its reader, so they
 * would hold their resources for ever. Checking all of them at intervals costs less than a timer for each request.
 */
export class SlowReaders {
  readonly #maxMs: number
  readonly #replies = new Map<ModelCall, ServerResponse>()
  readonly #standing = new Map<ModelCall, Standstill>()
  readonly #gateways = new WeakSet<Gateway>()
  #looking: NodeJS.Timeout | undefined

  /** 0: nobody is cut. */
  constructor (maxMs: number) {
    this.#maxMs = maxMs
  }

  /** Watches a reply that was handed over. Not one that is taken completely, or settled: it would never be removed again. */
  follow ({ gateway, llm, reply }: Followed): void {
    if (llm.settled || this.#maxMs === 0 || (reply.raw.writableEnded && reply.raw.writableLength === 0)) return
    if (!this.#gateways.has(gateway)) {
      this.#gateways.add(gateway)
      gateway.settlement.onSettled((settled) => this.#forget(settled))
    }
    this.#replies.set(llm, reply.raw)
    this.#looking ??= setInterval(() => this.#look(), Math.ceil(this.#maxMs / 4)).unref()
  }

  end (): void {
    clearInterval(this.#looking)
  }

  #forget (llm: ModelCall): void {
    this.#replies.delete(llm)
    this.#standing.delete(llm)
  }

  #look (): void {
    const now = performance.now()
    for (const [llm, raw] of this.#replies) {
      const waiting = raw.writableLength
      // With pipelining it may be another reply's turn on the connection.
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

/** Marks the abort itself, because Node reports a reply as finished once its last byte was written, even if it was not read. */
function cut (llm: ModelCall, raw: ServerResponse): void {
  llm.abortedBy ??= 'client'
  // A destroyed HTTP/2 stream would look complete to a caller that reads on after all.
  if (closeStream(raw, constants.NGHTTP2_INTERNAL_ERROR)) return
  resetOld(raw.req)
  raw.destroy()
}
