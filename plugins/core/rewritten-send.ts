/**
 * A mount of the host's may make a path of a model endpoint of one that is none: at `/:any`, with the version in its `rewritePrefix`, it
 * sends `/any/files` to `/v1/files`. Where model requests are guarded in the same mount, that would be a way around the guard. What is
 * sent is read here as the provider would read it, at the moment when it is known.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { methodAsked } from './arrival.js'
import { createResolve, type Resolution } from './url/resolve.js'
import { fromVersions, isSuspicious, readings } from './url/segments.js'
import { withoutQuery } from './url/single-version.js'

// To some providers, and to servers in front of some, case does not count.
const resolve = createResolve('', false)

/** What a path is to a provider, whatever stands in front of its version and however it is spelled; null for none with a version. */
export function readAtVersion (path: string, request: FastifyRequest): Resolution {
  const spelled = isSuspicious(path) ? readings(path, false).map((segments) => fromVersions(segments.join('/'))) : []
  // Many readings are the same, and each is as long as the path.
  const texts = [...new Set([path, fromVersions(path), fromVersions(path.toLowerCase()), ...spelled])]
  const found = texts.flatMap((each) => resolve(methodAsked(request), each, {}) ?? [])
  return found.find((read) => read.kind === 'endpoint' || read.code !== 'unknown_url') ?? found[0] ?? null
}

/**
 * The same of where a mount of `@fastify/http-proxy` would open a socket, which goes by no `reply.from`: asked of the mount itself, as
 * its options do not tell all. Where it would refuse the path, that itself is read.
 */
export function readSocket (request: FastifyRequest, reply: FastifyReply): Resolution {
  const fromParameters: unknown = Reflect.get(reply, 'fromParameters')
  return typeof fromParameters === 'function' ? readAtVersion(withoutQuery(sentBy(fromParameters, request, reply)), request) : null
}

function sentBy (fromParameters: Function, request: FastifyRequest, reply: FastifyReply): string {
  try {
    const sent: unknown = Reflect.apply(fromParameters, reply, [request.url, request.params, request.server.prefix])
    return String(Reflect.get(Object(sent), 'url'))
  } catch {
    return request.url
  }
}
