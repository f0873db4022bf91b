import type { ModelCall } from '../core/model-call.js'
import type { KeptReply } from '../core/upstream.js'
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
  note (error: Error, sent = false): void {
    if (this.#error === untold || (sent && !this.#wasSent)) this.#error = error
    this.#wasSent ||= sent
  }

  /** A reply says more than any error. */
  keep (reply: KeptReply, result: AttemptResult): void {
    this.#reply = moreUseful(this.#reply, reply, result)
  }

  /** One of those that may have what is asked for has it not: the answer where all of them say so, and none otherwise. */
  keepMissing (reply: KeptReply): void {
    this.#missing = reply
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
