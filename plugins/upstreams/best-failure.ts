import type { ModelCall } from '../core/call/model-call.js'
import type { Failure, KeptReply } from '../core/upstream/upstream.js'
import { countFor } from './call.js'
import { moreUseful, type AttemptResult } from './judgement.js'

const nothingTried = new Error('nothing was tried')

/** The reply or error for a caller that no attempt served. */
export class BestFailure {
  #reply: KeptReply | null = null
  #missing: KeptReply | null = null
  #error: Error = nothingTried
  #wasSent = false

  /** Keeps the first error, or better the first after something was sent: its provider may have done work that is paid for. */
  note<T extends Error> (error: T, sent = false): T {
    if (this.#error === nothingTried || (sent && !this.#wasSent)) this.#error = error
    this.#wasSent ||= sent
    return error
  }

  /**
   * A reply says more than any error. `isMissing`: a member that may have what is asked for does not have it. That is the answer only if
   * all of them say so.
   */
  keep (failure: Failure, result: AttemptResult, isMissing: boolean): void {
    if (failure.kind === 'transport') this.note(failure.error, failure.sent)
    else if (isMissing) this.#missing = failure.reply
    else this.#reply = moreUseful(this.#reply, failure.reply, result)
  }

  get isMissing (): boolean {
    return this.#missing !== null
  }

  /** The request then counts for the upstream whose reply this is. */
  answer (llm: ModelCall): KeptReply | Error {
    const reply = this.#reply ?? (this.#error === nothingTried ? this.#missing : null)
    if (reply !== null) countFor(reply.upstream, llm)
    return reply ?? this.#error
  }
}
