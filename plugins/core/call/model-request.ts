/** What a host may read of a model request: `request.llm`. */
import type { Cost } from '../money/cost.js'
import type { Group, Key, Outcome, ProtocolLabel, TokenUsage } from '../types.js'

/**
 * One model request as hooks and handlers of the host find it in `request.llm` (null on every other route). It cannot be
 * written to; what is not known yet is null, and is there once the part of the gateway that tells it has run.
 */
export interface ModelRequest {
  /** Unique in the world: the reply's `x-request-id`, the log line and the usage ledger have it. */
  readonly id: string
  /** What the caller speaks, such as `chat_completions`. */
  readonly protocol: ProtocolLabel
  /** What it asks for, such as `responses.cancel`. */
  readonly endpoint: string
  /** As the caller named it. From the path at once, from a body once that was read. */
  readonly model: string | null
  /** The caller asked for a streamed reply. */
  readonly stream: boolean
  /** Who calls. Never holds the secret. */
  readonly key: Key | null
  readonly group: Group | null
  /** Tokens that the reply told, once it ended. */
  readonly usage: Readonly<TokenUsage> | null
  /** What it cost, once it ended; null without prices, and where nothing was charged for. */
  readonly cost: Cost | null
  /** How it ended. */
  readonly outcome: Outcome | null
  /** Name of the upstream that it was sent to; null where the host's own mount decides. */
  readonly upstream: string | null
}
