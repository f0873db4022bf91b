import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { hasGateway } from '../core/gateway.js'
import { OptionError } from '../core/config/options.js'

type Hook = (request: FastifyRequest, reply: FastifyReply, done: () => void) => void

/** Throws `LLM_GATEWAY_OPTION` in a scope where no plugin of this package is registered. */
export function checkGateway (app: FastifyInstance): void {
  if (!hasGateway(app)) {
    throw new OptionError(
      'proxyOptions', `needs the gateway in the same app: register llmGateway outside of the mount at ${app.prefix || '/'}`
    )
  }
}

/**
 * A hook that passes every request and fails the start of an app without the gateway. A mount's options have no other access to the app
 * before the first request: Fastify binds each hook to its scope once all plugins are there, so that the order in
 * which mount and gateway were registered does not matter.
 */
export function needsGateway (): Hook {
  function llmGatewayNeeded (_request: FastifyRequest, _reply: FastifyReply, done: () => void): void {
    done()
  }
  const bind = (app: FastifyInstance): Hook => {
    checkGateway(app)
    return llmGatewayNeeded
  }
  return Object.defineProperty(llmGatewayNeeded, 'bind', { value: bind })
}
