import type { IncomingHttpHeaders } from 'node:http'
import { GatewayError } from '../core/errors/gateway-error.js'
import type { ModelCall } from '../core/call/model-call.js'
import type { Called, Destination, Upstream } from '../core/upstream/upstream.js'
import { PoolAttempts } from './attempts.js'
import { callOf } from './call.js'
import type { Health, HealthRegistry } from './health.js'
import { poolOfOne, type Pool } from './pool.js'
import type { Surroundings } from './surroundings.js'

/** One upstream by itself. If its secret never changes there is nothing to decide, and the call is made at once. */
export function upstreamDestination (upstream: Upstream, registry: HealthRegistry, around: Surroundings): Destination {
  return { ...poolDestination(poolOfOne(upstream, registry), around), call: fixedCall(upstream, registry.of(upstream)) }
}

function fixedCall (upstream: Upstream, health: Health): ((llm: ModelCall) => Called) | null {
  if (upstream.secret.renew !== null) return null
  const secret = upstream.secret.known()
  return (llm) => {
    const called = callOf(upstream, llm, secret, null)
    // A request that is settled already (its caller left while a host's hook waited) would be counted here for ever.
    if (llm.routing.visited === null && !llm.settled && !(called instanceof GatewayError)) {
      llm.routing.visited = health
      health.active += 1
    }
    return called
  }
}

export function poolDestination (pool: Pool, around: Surroundings): Destination {
  return {
    name: pool.name,
    upstreams: pool.members.map(({ upstream }) => upstream),
    call: null,
    open: (llm: ModelCall, headers: IncomingHttpHeaders, once: boolean) => new PoolAttempts(pool, llm, headers, once, around),
  }
}
