import type { FastifyRequest } from 'fastify'
import { gatewayOf } from '../gateway.js'

/** A name or an address, and a port. Any other text of a caller is not repeated. */
const plainHost = /^(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i

/**
 * The address at which a caller reached the gateway, including its prefix, for messages: as the caller wrote it, or as a proxy in front
 * says if the host trusts that proxy (Fastify's `trustProxy`). `<gateway>` is a placeholder.
 */
export function ownAddress (request: FastifyRequest): string {
  const { host, protocol, server } = request
  return `${protocol === 'https' ? 'https' : 'http'}://${plainHost.test(host) ? host : '<gateway>'}${gatewayOf(server).prefix}`
}
