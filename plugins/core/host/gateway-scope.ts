/** Where a gateway may stand in the host's tree of scopes. */
import type { FastifyInstance } from 'fastify'
import { gatewayOf, hasGateway, type Gateway } from '../gateway.js'
import { OptionError } from '../config/options.js'
import { mountPrefix } from '../url/mount-prefix.js'
import { belowPrefix, segmentsOf } from '../url/segments.js'

/**
 * Fails the start of a second gateway in the same scope: both would read URLs below one prefix, and what is below the
 * other would be open to anybody. Scopes side by side may have one each, unless a plugin of this package is registered around them.
 */
export function refuseSecond (app: FastifyInstance): void {
  if (!hasGateway(app) || !gatewayOf(app).guarded) return
  throw new OptionError(
    'auth',
    'is registered already in this scope, or in one beside it below plugins that both share: register one gateway for an app, or one in ' +
      'each scope with all its plugins'
  )
}

/** Fails the start in a scope that is not below the prefix of the gateway around it: nobody would be asked for a key there. */
export function refuseOutside (app: FastifyInstance, { prefix }: Gateway): void {
  if (belowPrefix(segmentsOf(prefix), segmentsOf(mountPrefix(app.prefix, ''))) !== null) return
  throw new OptionError(
    'prefix',
    `is not known to the plugins of the gateway outside of the scope at ${app.prefix}: register them in it, or the gateway outside`
  )
}
