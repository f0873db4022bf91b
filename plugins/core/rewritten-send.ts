/**
 * A mount of the host's may make a path of a model endpoint of one that is none: at `/:any`, with the version in its `rewritePrefix`, it
 * sends `/any/files` to `/v1/files`. Where model requests are guarded in the same mount, that would be a way around the guard.
 */
import type {} from '@fastify/reply-from'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Gateway } from './gateway.js'
import { createResolve, type Resolution } from './url/resolve.js'
import { fromVersions } from './url/segments.js'
import { withoutQuery } from './url/single-version.js'

const resolve = createResolve('')

/** Looks at where a request that is none of ours is sent. `refused` answers it in place of that. */
export function watchRewritten (gateway: Gateway, request: FastifyRequest, reply: FastifyReply, refused: () => FastifyReply): void {
  const { from } = reply
  const leavesUnknown = gateway.unknown.mounts === 'leave'
  reply.from = (source, options) => {
    const path = withoutQuery(source ?? '')
    const isKept = path === '' || path === withoutQuery(request.url)
    return isKept || isLeft(path, request, leavesUnknown) ? from.call(reply, source, options) : refused()
  }
}

function isLeft (path: string, request: FastifyRequest, leavesUnknown: boolean): boolean {
  const read = readAtVersion(path, request)
  return read === null || (leavesUnknown && read.kind === 'refused' && read.code === 'unknown_url')
}

/** What a path is to a provider, whatever stands in front of its version; null for none with a version. */
export function readAtVersion (path: string, { method, headers }: FastifyRequest): Resolution | null {
  return resolve(method, path, headers) ?? resolve(method, fromVersions(path), headers)
}
