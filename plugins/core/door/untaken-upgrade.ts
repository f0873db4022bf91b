import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isTakenAsUpgrade, methodAsked } from './arrival.js'
import { readBeside } from '../host/rewritten-send.js'
import type { Resolve } from '../url/resolve.js'
import { withoutQuery } from '../url/query.js'

/** How long a listener has to take a socket: it may look the caller up before, as the documentation of `ws` shows. */
const patienceMs = 2_000

const kHead = Symbol('fastify-llm-gateway.head')
const routed = new WeakSet<object>()

interface Upgrade {
  readonly raw: IncomingMessage
  readonly socket: Socket
  /** What came behind the head. */
  readonly head: unknown
  /** Bytes that the socket had sent; null where an earlier reply is still being sent. */
  readonly sent: number | null
  /** Its path is one of the gateway's. */
  readonly isOurs: boolean
}

/** What of the gateway may still change while plugins are registered. */
interface LateParts {
  readonly resolve: Resolve
  readonly setAside: (raw: IncomingMessage) => void
}

/**
 * Node hands every upgrade to the listeners for upgrades, and no plugin sees it. If the host's listener ignores the path of a
 * model request, its caller would wait for ever. So an upgrade that nobody has taken after a while is routed like any request, and the door
 * answers it.
 */
export function answerUntaken (app: FastifyInstance, gateway: LateParts): void {
  const waiting = new Map<Upgrade, NodeJS.Timeout>()

  function end (upgrade: Upgrade, answer: () => void): void {
    clearTimeout(waiting.get(upgrade))
    waiting.delete(upgrade)
    // Another gateway of the app has routed it: an offer that it ignores is being put back, and would be read twice.
    if (routed.has(upgrade.raw)) return
    if (isTaken(upgrade)) upgrade.socket.off('error', ignoreError)
    else answer()
  }

  watchUpgrades(app, gateway, (upgrade, isHeard) => {
    const { socket, isOurs } = upgrade
    // `@fastify/http-proxy` listens for no error before the handshake, and a key may have to be looked up until then.
    if (isRouted(upgrade)) ignoreErrors(socket)
    if (!isOurs || isTaken(upgrade)) return
    ignoreErrors(socket)
    waiting.set(upgrade, setTimeout(() => end(upgrade, () => route(app, upgrade)), isHeard ? patienceMs : 0).unref())
  })
  app.addHook('preClose', async () => {
    for (const upgrade of [...waiting.keys()]) end(upgrade, () => upgrade.socket.destroy())
  })
}

/**
 * Wraps `emit` in place of adding a listener: with one, Node takes every offer for an upgrade, and `@fastify/http-proxy` serves fewer if
 * its listener is not the only one. `isHeard` may be false on a further address of `localhost`: Fastify listens there, and hands upgrades
 * to its server whether that has a listener or not.
 */
function watchUpgrades ({ server }: FastifyInstance, gateway: LateParts, watch: (upgrade: Upgrade, isHeard: boolean) => void): void {
  const { emit } = server
  Object.assign(server, {
    emit (...args: [event: string, raw?: unknown, socket?: unknown, head?: unknown]): boolean {
      const [event, raw, socket, head] = args
      if (event !== 'upgrade' || !(raw instanceof IncomingMessage) || !(socket instanceof Socket)) {
        return Reflect.apply(emit, server, args)
      }
      const sent = replyOn(socket) === null ? socket.bytesWritten : null
      const upgrade = { raw, socket, head, sent, isOurs: isOurs(gateway, raw) }
      gateway.setAside(raw)
      const isHeard: boolean = Reflect.apply(emit, server, args)
      watch(upgrade, isHeard)
      return isHeard
    },
  })
}

function isOurs ({ resolve }: LateParts, { method, url, headers }: IncomingMessage): boolean {
  const asked = String(url)
  return resolve(methodAsked({ method: String(method), headers }), asked, headers) !== null || readBeside(withoutQuery(asked)) !== null
}

function isTaken (upgrade: Upgrade): boolean {
  const { socket, sent } = upgrade
  return socket.destroyed || socket.writableEnded || (sent !== null && socket.bytesWritten !== sent) ||
    socket.listenerCount('data') + socket.listenerCount('readable') > 0 || isRouted(upgrade)
}

/** Somebody gave it to the router, and it waits for its reply. */
function isRouted ({ raw, socket }: Upgrade): boolean {
  return replyOn(socket)?.req === raw
}

/** The reply that has the socket. */
function replyOn (socket: Socket): ServerResponse | null {
  const reply: unknown = Reflect.get(socket, '_httpMessage')
  return reply instanceof ServerResponse ? reply : null
}

/** As `@fastify/http-proxy` does. */
function route (app: FastifyInstance, { raw, socket, head }: Upgrade): void {
  if (replyOn(socket) !== null) {
    socket.destroy()
    return
  }
  const reply = new ServerResponse(raw)
  reply.assignSocket(socket)
  endBehind(reply, socket)
  Reflect.set(raw, kHead, head)
  routed.add(raw)
  app.routing(raw, reply)
}

/** Ends the connection of an upgrade that is answered. Whoever routed it may not: `@fastify/websocket` does only what its own hook saw. */
export function endUpgrade ({ raw }: FastifyRequest, reply: FastifyReply): void {
  if (isTakenAsUpgrade(raw)) endBehind(reply.raw, raw.socket)
}

/** Nobody reads on. */
function endBehind (reply: ServerResponse, socket: Socket): void {
  reply.shouldKeepAlive = false
  reply.once('finish', () => {
    socket.resume()
    socket.destroySoon()
  })
}

/** Gives an upgrade that nobody had taken back to the host, as if nobody had routed it. False for any other request. */
export function leaveUntaken ({ raw }: FastifyRequest, reply: FastifyReply): boolean {
  if (!routed.has(raw)) return false
  reply.hijack()
  reply.raw.detachSocket(raw.socket)
  return true
}

/** Node has removed its own listener, and an unhandled error ends the process: a caller could cause one by resetting its connection. */
function ignoreErrors (socket: Socket): void {
  if (!socket.listeners('error').includes(ignoreError)) socket.on('error', ignoreError)
}

function ignoreError (): void {}
