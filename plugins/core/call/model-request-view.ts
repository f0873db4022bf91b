import type { ModelCall } from './model-call.js'
import type { ModelRequest } from './model-request.js'
import type { Cost } from '../money/cost.js'
import type { Group, Key, Outcome, ProtocolLabel, TokenUsage } from '../types.js'

class ModelRequestView implements ModelRequest {
  // Private, so that printing a view shows its public fields, and not what the plugins pass to each other.
  readonly #call: ModelCall

  constructor (call: ModelCall) {
    this.#call = call
  }

  get id (): string { return this.#call.id }
  get protocol (): ProtocolLabel { return this.#call.protocol }
  get endpoint (): string { return this.#call.endpoint.id }
  get model (): string | null { return this.#call.model }
  get stream (): boolean { return this.#call.stream }
  get key (): Key | null { return this.#call.auth.key }
  get group (): Group | null { return this.#call.auth.group }
  get usage (): Readonly<TokenUsage> | null { return this.#call.usage.tokens }
  get cost (): Cost | null { return this.#call.cost?.exact ?? null }
  get outcome (): Outcome | null { return this.#call.outcome }
  get upstream (): string | null { return this.#call.routing.upstream }

  /** For a log line of the host: names and numbers. */
  toJSON (): Record<string, unknown> {
    const { id, protocol, endpoint, model, stream, key, group, usage, cost, outcome, upstream } = this
    return { id, protocol, endpoint, model, stream, key: key?.id ?? null, group: group?.id ?? null, usage, cost, outcome, upstream }
  }
}

/** Made on demand, and then always the same object. */
export function modelRequestOf (call: ModelCall): ModelRequest {
  call.view ??= new ModelRequestView(call)
  return call.view
}
