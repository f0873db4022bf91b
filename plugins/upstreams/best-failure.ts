import type { ModelCall } from '../core/call/model-call.js'
import type { Failure, KeptReply } from '../core/upstream/upstream.js'
import { countFor } from './call.js'
import { moreUseful, type AttemptResult } from './judgement.js'

const untold = new Error('nothing was tried')

/** What a caller is told where no attempt served it. */
export class BestFailure {
  #reply: KeptReply | null = null
  #missing: KeptReply | null = null
  #error: Error = untold
  #wasSent = false

  /** The first one counts, and before it the first with which something was sent: its provider may have done work that is paid for. */
  note<T extends Error> (error: T, sent = false): T {
    if (this.#error === untold || (sent && !this.#wasSent)) this.#error = error
    this.#wasSent ||= sent
    return error
  }

  /**
   * A reply says more than any error. `isMissing`: one of those that may have what is asked for has it not, which is the answer where all
   * of them say so, and none otherwise.
   */
  keep (failure: Failure, result: AttemptResult, isMissing: boolean): void {
    if (failure.kind === 'transport') this.note(failure.error, failure.sent)
    else if (isMissing) this.#missing = failure.reply
    else this.#reply = moreUseful(this.#reply, failure.reply, result)
  }

  get isMissing (): boolean {
    return this.#missing !== null
  }

  /** The request is counted for the upstream whose reply is told. */
  told (llm: ModelCall): KeptReply | Error {
    const reply = this.#reply ?? (this.#error === untold ? this.#missing : null)
    if (reply !== null) countFor(reply.upstream, llm)
    return reply ?? this.#error
  }
}
