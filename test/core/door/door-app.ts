import httpProxy, { type FastifyHttpProxyOptions } from '@fastify/http-proxy'
import Fastify, { type FastifyInstance, type FastifyServerOptions } from 'fastify'
import type { Test } from 'tap'
import type { LlmGatewayOptions } from '../../../plugins/index.js'
import { everyProtocol, listen, secret } from '../../helpers/gateway.js'
import { startUpstream, type Upstream } from '../../helpers/upstream.js'
import { askOnce, type RawReply } from '../../helpers/wire.js'

export const mountSecret = 'canary-mount-secret'
export const groupSecret = 'canary-group-secret'
export const socketHeaders = [
  'host: h', 'connection: Upgrade', 'upgrade: websocket', 'sec-websocket-version: 13', 'sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==',
]
export const chat = '{"model":"m","messages":[{"role":"user","content":"hi"}]}'
export const json = 'content-type: application/json'
export const bearer = `authorization: Bearer ${secret}`
export const guarded: LlmGatewayOptions = {
  groups: { all: { protocols: everyProtocol } }, keys: [{ id: 'caller', group: 'all', secret }], routes: false,
}

export interface Provider {
  readonly upstream: Upstream
  /** Everything that came, upgrades included, one line each with its headers. */
  readonly came: () => string[]
}

export async function startProvider (t: Test): Promise<Provider> {
  const upstream = await startUpstream(t)
  upstream.respond = ({ method }) => method === 'POST' ? null : { body: { ok: true } }
  const upgrades: string[] = []
  upstream.server.on('upgrade', ({ method, url, rawHeaders }, socket) => {
    upgrades.push(`UPGRADE ${method} ${url} ${rawHeaders.join(' ')}`)
    socket.destroy()
  })
  return {
    upstream,
    came: () => [
      ...upstream.seen.map(({ method, url, rawHeaders, body }) => `${method} ${url} ${rawHeaders.join(' ')} ${body.toString()}`),
      ...upgrades,
    ],
  }
}

export type Mount = Record<string, unknown> & Pick<FastifyHttpProxyOptions, 'prefix'>

/** A mount of the host's, with a credential of its own on requests and on sockets. */
export async function mount (app: FastifyInstance, upstream: string, options: Mount): Promise<void> {
  const headers = { authorization: `Bearer ${mountSecret}`, 'x-mount': 'yes' }
  const replyOptions = { rewriteRequestHeaders: (_: unknown, given: object) => ({ ...given, ...headers }) }
  const all: { upstream: string } = Object.assign({ upstream, replyOptions, wsClientOptions: { headers } }, options)
  await app.register(httpProxy, all)
}

export async function startApp (
  t: Test, build: (app: FastifyInstance) => Promise<void>, options: FastifyServerOptions = {}
): Promise<{ app: FastifyInstance, url: string }> {
  const app = Fastify(options)
  t.teardown(() => app.close())
  await build(app)
  return { app, url: await listen(app) }
}

export async function upgradeOf (url: string, path: string, ...headers: string[]): Promise<RawReply | 'no reply'> {
  const late = new Promise<'no reply'>((resolve) => setTimeout(resolve, 2_000, 'no reply').unref())
  return await Promise.race([askOnce(url, [`GET ${path} HTTP/1.1`, ...socketHeaders, ...headers]), late])
}
