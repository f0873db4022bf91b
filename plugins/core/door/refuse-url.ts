import type { FastifyReply, FastifyRequest } from 'fastify'
import { gatewayError } from '../errors/gateway-error.js'
import { refuse } from '../errors/refuse.js'
import type { Gateway } from '../gateway.js'
import { givenUrl, showRefused, type RawRequest } from '../call/identify.js'
import { dropCredentials } from './carriers.js'
import { ownAddress } from './own-address.js'
import { familyAsked, knownActions } from '../url/match.js'
import { queryOf, splitKeys, withoutQuery } from '../url/query.js'
import type { UrlRefusal } from '../url/refusal.js'
import { segmentsOf } from '../url/segments.js'

/**
 * Answers a request whose path is ours but leads to no endpoint: the native 400, 404 or 405 of the caller's protocol, with the right base
 * URL for its client. A credential in its query is removed from the request's URL. Without an endpoint it has no settlement, so metrics and
 * log are told of it here.
 */
export function refuseUrl (
  gateway: Gateway, request: FastifyRequest, reply: FastifyReply, refusal: UrlRefusal
): FastifyReply {
  const { code, family, url, allow = [] } = refusal
  showRefused(request, refusal)
  // Where a hook fails on this answer, a host's error handler may send the request on.
  if (gateway.guarded) dropCredentials(request.raw.headers)
  const path = withoutQuery(url).replace(/^https?:\/\/[^/]*/i, '')
  const values = { method: request.method, path, baseUrl: family.baseUrl(ownAddress(request)), known: knownActions.join(', ') }
  const error = gatewayError(answeredAs(code), values, {
    headers: allow.length === 0 ? {} : { allow: allow.join(', ') },
  })
  gateway.recorder.pathRefused(family.name, error.code)
  gateway.urlRefused(request, family, error)
  return refuse(reply, family, error)
}

/** For a request whose URL says nothing else. */
export function unknownUrl (raw: RawRequest): UrlRefusal {
  const url = givenUrl(raw)
  const path = withoutQuery(url)
  const query = queryOf(url)
  const { query: kept, keys } = splitKeys(query)
  const family = familyAsked(segmentsOf(path), { headers: raw.headers, query, versions: [] })
  return { kind: 'refused', code: 'unknown_url', family, url: path + kept, keys: () => keys }
}

function answeredAs (code: UrlRefusal['code']): Exclude<UrlRefusal['code'], 'blank_in_path' | 'misspelled_action'> {
  if (code === 'blank_in_path') return 'unknown_url'
  return code === 'misspelled_action' ? 'unknown_action' : code
}
