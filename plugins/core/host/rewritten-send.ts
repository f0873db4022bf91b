/**
 * A mount of the host's may turn other paths into paths of the provider: at `/:any`, with the version in its `rewritePrefix`, it
 * sends `/any/files` to `/v1/files`. That would be a way around the guard of the same mount. So the path that is really sent is read
 * here as the provider would read it, when it is known.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { besideVersions } from '../../protocols/index.js'
import { isSocketUpgrade, methodAsked } from '../door/arrival.js'
import { isUnknown } from '../url/refusal.js'
import { createResolve, type Resolution } from '../url/resolve.js'
import { belowPrefix, fromVersions, isSuspicious, leadingVersions, readings, segmentsOf } from '../url/segments.js'
import { withoutQuery } from '../url/query.js'

// To some providers, and to servers in front of some, case does not count.
const resolve = createResolve('', false)

/** What a path is to a provider, whatever is in front of its version and however it is spelled; null for a path without a version. */
export function readAtVersion (path: string, request: FastifyRequest): Resolution {
  const spelled = isSuspicious(path) ? readings(path, false).map((segments) => fromVersions(segments.join('/'))) : []
  // Many readings are the same, and each is as long as the path.
  const found = readEach(new Set([path, fromVersions(path), fromVersions(path.toLowerCase()), ...spelled]), request)
  return gravest(found) ?? found[0] ?? readBeside(path)
}

/** The same for paths that a provider has without a version. */
export function readBeside (path: string): Resolution {
  const texts = isSuspicious(path) ? readings(path, false).map((segments) => `/${segments.join('/')}`) : [path]
  return texts.some((text) => besideVersions.test(text)) ? resolve('GET', '/v1', {}) : null
}

/**
 * What a path is to a provider that tells no cases apart, where a version stands at its start or after the gateway's own `prefix`; null
 * where it is no endpoint's. What sockets there are is not known: for one it is null only without a version.
 */
export function readAtStart (path: string, prefix: string, request: FastifyRequest): Resolution {
  const mount = segmentsOf(prefix.toLowerCase())
  const read = isSuspicious(path) ? readings(path, false) : [segmentsOf(path.toLowerCase())]
  const below = read.map((segments) => belowPrefix(segments, mount) ?? segments).filter((segments) => leadingVersions(segments).length > 0)
  const found = readEach(new Set(below.map((segments) => `/${segments.join('/')}`)), request)
  return gravest(found) ?? (isSocketUpgrade(request) ? found[0] ?? readBeside(path) : null)
}

function readEach (paths: ReadonlySet<string>, request: FastifyRequest): Array<Exclude<Resolution, null>> {
  return [...paths].flatMap((path) => resolve(methodAsked(request), path, {}) ?? [])
}

/** Undefined where all of them are unknown paths. An action that no endpoint has comes last: some mounts may send it. */
function gravest (found: ReadonlyArray<Exclude<Resolution, null>>): Exclude<Resolution, null> | undefined {
  return found.find((read) => read.kind === 'endpoint' || !isUnknown(read)) ??
    found.find((read) => read.kind === 'refused' && read.code === 'unknown_action')
}

/**
 * The path to which a mount of `@fastify/http-proxy` would open a WebSocket, which does not use `reply.from`. Asks the mount itself,
 * because its options do not determine it. If the mount would refuse the path, that path itself; null if no such mount serves the request.
 */
export function socketPath (request: FastifyRequest, reply: FastifyReply): string | null {
  const fromParameters: unknown = Reflect.get(reply, 'fromParameters')
  return typeof fromParameters === 'function' ? withoutQuery(sentBy(fromParameters, request, reply)) : null
}

function sentBy (fromParameters: Function, request: FastifyRequest, reply: FastifyReply): string {
  try {
    const sent: unknown = Reflect.apply(fromParameters, reply, [request.url, request.params, request.server.prefix])
    return String(Object(sent).url)
  } catch {
    return request.url
  }
}
