/** What a host may read of a model request: `request.llm`. */
import type { Cost } from '../money/cost.js'
import type { Group, Key, Outcome, ProtocolLabel, TokenUsage } from '../types.js'

/**
 * One model request, as hooks and handlers of the host find it in `request.llm` (null on every other route). It is read-only;
 * a field is null until the part of the gateway that sets it has run.
 */
export interface ModelRequest {
  /** A UUID; also the `id` of the log line and of the usage ledger, and the reply's `x-request-id` if the upstream sent none. */
  readonly id: string
  /** The caller's protocol, such as `chat_completions`. */
  readonly protocol: ProtocolLabel
  /** Id of the endpoint, such as `responses.cancel`. */
  readonly endpoint: string
  /** As the caller named it: in the path, known at once, or in the body, known once that was read. */
  readonly model: string | null
  /** The caller asked for a streamed reply. */
  readonly stream: boolean
  /** Who calls. Never holds the secret. */
  readonly key: Key | null
  readonly group: Group | null
  /** Tokens that the reply reported, once it ended. */
  readonly usage: Readonly<TokenUsage> | null
  /** What it cost, once it ended; null without prices, and if nothing was charged. */
  readonly cost: Cost | null
  /** How it ended. */
  readonly outcome: Outcome | null
  /** Name of the upstream that it was sent to; null if the host's own mount decides. */
  readonly upstream: string | null
}
