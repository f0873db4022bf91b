import type { FastifyReply, FastifyRequest } from 'fastify'
import { gatewayError } from '../errors/gateway-error.js'
import { refuse } from '../errors/refuse.js'
import type { Gateway } from '../gateway.js'
import { showRefused } from '../call/identify.js'
import { ownAddress } from './own-address.js'
import { knownActions } from '../url/match.js'
import type { UrlRefusal } from '../url/resolve.js'

/**
 * Answers a request whose path is ours but no endpoint: the native 400, 404 or 405 of the caller's protocol, with the
 * base URL that its client should be given. A credential in its query is gone from the request's URL. It is settled by nobody,
 * having no endpoint, so that those who tell of it hear of it here.
 */
export function refuseUrl (
  gateway: Gateway, request: FastifyRequest, reply: FastifyReply, refusal: UrlRefusal
): FastifyReply {
  const { code, family, url, allow = [] } = refusal
  showRefused(request, refusal)
  const path = url.replace(/\?.*/s, '').replace(/^https?:\/\/[^/]*/i, '')
  const values = { method: request.method, path, baseUrl: family.baseUrl(ownAddress(request)), known: knownActions.join(', ') }
  const error = gatewayError(code === 'blank_in_path' ? 'unknown_url' : code, values, {
    headers: allow.length === 0 ? {} : { allow: allow.join(', ') },
  })
  gateway.recorder.pathRefused(family.name, error.code)
  gateway.urlRefused(request, family, error)
  return refuse(request, reply, family, error)
}
