/** What hosts see: `app.llm` of the gateway, `request.llm` of a model request. */
import type { FastifyRequest } from 'fastify'
import { modelCallOf } from '../call/model-call.js'
import { modelRequestOf } from '../call/model-request-view.js'
import type { ModelRequest } from '../call/model-request.js'
import { OptionError } from '../config/options.js'
import type { CallSettlement } from '../call/settlement.js'
import type { KeyChange } from '../types.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** What the gateway knows of a model request; null for any other request. */
    readonly llm: ModelRequest | null
  }
  interface FastifyInstance {
    /** What a host can do with the gateway. */
    readonly llm: ModelGateway
  }
  interface FastifyContextConfig {
    /** `own`: a route of this package. `proxy`: an adapted mount, which spreads `proxyOptions()`. */
    llm?: 'own' | 'proxy'
    /** A mount that spreads `proxyOptions({ unknown: 'forward' })`. */
    llmUnknown?: 'forward'
  }
}

/** Called once for a model request, at its end. `request` is Fastify's request. */
export type SettledListener = (settled: ModelRequest, request: FastifyRequest) => unknown

/** What a host can do with the gateway: `app.llm`. */
export interface ModelGateway {
  /**
   * Forgets cached keys: one by `digest` or `id`, those of a `group`, or every key (`{ group: '*' }`). Throws `LLM_GATEWAY_OPTION` for
   * none of these.
   */
  invalidateKeys: (change: KeyChange) => void
  /**
   * Calls `listener` once for each model request, after its last byte, error, abort or timeout, when its usage, cost
   * and outcome are known. Nobody waits for it; if it throws or rejects, that is logged and does no harm. Throws
   * `LLM_GATEWAY_OPTION` for what is no function.
   *
   *     app.llm.onSettled(({ key, usage }) => bill(key?.id, usage))
   */
  onSettled: (listener: SettledListener) => void
}

/** What of the gateway a host reaches; a plugin may put another function in its place. */
interface Viewed {
  readonly invalidateKeys: (change: KeyChange) => void
  readonly settlement: Pick<CallSettlement, 'onSettled'>
}

export function gatewayView (gateway: Viewed): ModelGateway {
  return {
    invalidateKeys (change) {
      const { digest, id, group, missed }: KeyChange = Object(change)
      const isClear = missed === true || [digest, id, group].some((name) => typeof name === 'string' && name !== '')
      // Nothing would be forgotten, and a revoked key stay good.
      if (!isClear) throw new OptionError('invalidateKeys', 'must name an id, a group or a digest')
      gateway.invalidateKeys(change)
    },
    onSettled (listener) {
      if (typeof listener !== 'function') throw new OptionError('onSettled', 'must be a function')
      gateway.settlement.onSettled((llm, request) => listener(modelRequestOf(llm), request))
    },
  }
}

export function requestView (request: FastifyRequest): ModelRequest | null {
  const call = modelCallOf(request)
  return call === null ? null : modelRequestOf(call)
}
