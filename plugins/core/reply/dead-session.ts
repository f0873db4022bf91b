import { EventEmitter } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { ServerHttp2Session } from 'node:http2'

/** As long as a caller may leave its reply unread. */
const patienceMs = 300_000

const watched = new WeakSet<ServerHttp2Session>()

/**
 * Ends the HTTP/2 connection of a request whose caller no longer answers. If a caller breaks the protocol after its GOAWAY (with Node 20:
 * at any time), Node neither reads its connection nor ends it, and does not notice when it is closed: its requests would be active for
 * ever, and never be charged. The framework's `http2SessionTimeout` tells when nothing moves on a connection; then the caller is sent
 * settings, which it acknowledges if it is still there. A ping is no use, because Node sends none on a connection that is about to end.
 */
export function endDeadSession (raw: IncomingMessage): void {
  if (raw.httpVersionMajor === 1) return
  const session: unknown = Object(Reflect.get(raw, 'stream')).session
  if (!isSession(session) || session.destroyed || watched.has(session)) return
  watched.add(session)
  const { [Symbol.asyncDispose]: closeSocket } = session.socket
  const ask = (): void => {
    const late = setTimeout(() => {
      session.destroy()
      // A session that is destroyed waits until its caller has read all and, over TLS, has ended its side.
      closeSocket().catch(() => {})
    }, patienceMs).unref()
    if (session.destroyed) return
    session.settings({}, () => {
      clearTimeout(late)
      // An acknowledgement does not restart the session's own timeout.
      setTimeout(ask, patienceMs).unref()
    })
  }
  session.once('timeout', ask)
}

function isSession (value: unknown): value is ServerHttp2Session {
  return value instanceof EventEmitter && 'settings' in value
}
