import type { IncomingMessage } from 'node:http'
import { TLSSocket } from 'node:tls'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isSocketUpgrade, isTakenAsUpgrade } from './arrival.js'
import { onFurtherServers } from './further-servers.js'
import type { Resolve } from '../url/resolve.js'

const notAgain: ReadonlySet<string> = new Set(['upgrade', 'http2-settings', 'connection'])

/**
 * Node takes any offer to upgrade for an upgrade if a server has a listener for upgrades, as for the sockets of one mount: the body of a
 * POST that only offers `h2c`, as some HTTP libraries do with each first request, is then lost to it, and reading it never ends. A server
 * may ignore an offer (RFC 9110 7.8): the request is put back on its connection without it, and read again. From Node 22.21 and 24.9 a
 * server is asked before it takes one, and from 26 one with a body cannot be put back. `gateway` may still change while plugins
 * are registered.
 */
export function ignoreOffers (app: FastifyInstance, gateway: { readonly resolve: Resolve }): void {
  const isIgnored = ({ headers, raw }: Pick<FastifyRequest, 'headers' | 'raw'>): boolean => (
    headers.upgrade !== undefined && isTakenAsUpgrade(raw) && !isSocketUpgrade({ headers, raw }) &&
      gateway.resolve(String(raw.method), String(raw.url), headers)?.kind === 'endpoint'
  )
  const takeFewer = (server: object): void => {
    const takes: unknown = Reflect.get(server, 'shouldUpgradeCallback')
    if (typeof takes !== 'function') return
    Reflect.set(server, 'shouldUpgradeCallback', (raw: IncomingMessage): unknown => (
      !isIgnored({ headers: raw.headers, raw }) && Reflect.apply(takes, server, [raw])
    ))
  }
  takeFewer(app.server)
  onFurtherServers(app, takeFewer)
  app.addHook('onRequest', function llmGatewayOffers (request, reply, done) {
    if (isIgnored(request)) putBack(request, reply)
    else done()
  })
}

function putBack ({ raw, server }: FastifyRequest, reply: FastifyReply): void {
  const { socket } = raw
  reply.hijack()
  reply.raw.detachSocket(socket)
  // After the other listeners for upgrades are done with this one.
  setImmediate(() => {
    socket.unshift(Buffer.concat([Buffer.from(headOf(raw), 'latin1'), bytesAfter(raw)]))
    server.server.emit(socket instanceof TLSSocket ? 'secureConnection' : 'connection', socket)
  })
}

function headOf ({ method, url, rawHeaders, headers }: IncomingMessage): string {
  const lines = rawHeaders.flatMap((name, i) => i % 2 === 0 && !notAgain.has(name.toLowerCase()) ? [`${name}: ${rawHeaders[i + 1]}`] : [])
  const connection = /(?:^|[\s,])close(?:$|[\s,])/i.test(String(headers.connection)) ? ['connection: close'] : []
  return [`${method} ${url} HTTP/1.1`, ...lines, ...connection, '', ''].join('\r\n')
}

/** The part of the body that came together with the head: the listener for upgrades keeps it on the request, under a symbol of its own. */
function bytesAfter (raw: IncomingMessage): Buffer {
  const kept = Object.getOwnPropertySymbols(raw).map((symbol): unknown => Reflect.get(raw, symbol))
  return kept.find((value) => Buffer.isBuffer(value)) ?? Buffer.alloc(0)
}
