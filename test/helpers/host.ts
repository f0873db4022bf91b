/** A gateway that a host runs already: plain `@fastify/http-proxy` mounts, with the provider's credential, beside our plugins. */
import httpProxy from '@fastify/http-proxy'
import Fastify, { type FastifyInstance, type FastifyServerOptions } from 'fastify'
import { auth, type AuthOptions } from '../../plugins/auth/index.js'
import { errors } from '../../plugins/errors/index.js'
import { proxyOptions } from '../../plugins/forward/index.js'
import { paths, type PathsOptions } from '../../plugins/paths/index.js'
import { everyProtocol, secret } from './gateway.js'

interface Scope {
  teardown: (close: () => unknown) => unknown
}

export interface HostOptions {
  server?: FastifyServerOptions
  mounts?: readonly string[]
  auth?: Partial<AuthOptions> | false
  paths?: PathsOptions | false
  errors?: false
  /** Mounts that spread `proxyOptions()`. */
  adapted?: boolean
  /** More of the host's own, before our plugins. */
  before?: (app: FastifyInstance) => void | Promise<void>
  /** The mounts come first. */
  mountsFirst?: boolean
}

export const hostSecret = 'host-provider-secret'

export const hostAuth: AuthOptions = { groups: { all: { protocols: everyProtocol } }, keys: [{ id: 'caller', group: 'all', secret }] }

/** An app with mounts (`/v1` and `/v1beta` by default) that go to `upstream`. */
export async function startHost (t: Scope, upstream: string, options: HostOptions = {}): Promise<FastifyInstance> {
  const { server = {}, mounts = ['/v1', '/v1beta'], adapted = false, mountsFirst = false } = options
  const app = Fastify(server)
  t.teardown(() => app.close())
  const mount = async (): Promise<void> => {
    for (const prefix of mounts) {
      const replyOptions = {
        rewriteRequestHeaders: (_: unknown, headers: object) => ({ ...headers, authorization: `Bearer ${hostSecret}` }),
      }
      await app.register(httpProxy, { upstream, prefix, rewritePrefix: prefix, replyOptions, ...(adapted ? proxyOptions() : {}) })
    }
  }
  await options.before?.(app)
  if (mountsFirst) await mount()
  if (options.paths !== false) await app.register(paths, options.paths ?? {})
  if (options.errors !== false) await app.register(errors)
  if (options.auth !== false) await app.register(auth, { ...hostAuth, ...options.auth })
  if (!mountsFirst) await mount()
  return app
}
