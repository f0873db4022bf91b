/** Answers a connection whose bytes are no HTTP request, or do not arrive in time, and closes it for good. */
import { randomUUID } from 'node:crypto'
import { STATUS_CODES, type IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { errorText, gatewayError, type GatewayError } from '../core/errors/gateway-error.js'
import { errorHeaders } from '../core/errors/refuse.js'
import { knownRequest } from '../core/call/identify.js'
import { familyOf } from '../protocols/index.js'
import { connectionOf } from './connection.js'

/** A caller that does not close its side of an ended connection is disconnected after this time: until then its socket counts. */
const lingerMs = 1_000

/**
 * Listener for the server's `clientError`. An error is only sent where it cannot be taken for a part of a reply or for the reply to
 * something else; a reply that is being sent still finishes. Nothing of the request is repeated.
 */
export function answerClientError (error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const connection = connectionOf(socket)
  if (connection.closing) return
  connection.closing = true
  const [first, ...others] = connection.open
  if (first === undefined) {
    const fits = connection.unread === null || connection.unread.complete
    close(socket, fits ? reply(error, null) : '')
  } else if (others.length === 0 && !first.req.complete && !first.headersSent) {
    close(socket, reply(error, first.req))
  } else {
    // Requests that are incomplete now never become complete: the last reply is that to the last complete request.
    const last = connection.open.reduce((found, response) => response.req.complete || response.headersSent ? response : found, first)
    last.once('finish', () => close(socket, ''))
  }
}

/** Node's own end of a connection waits for the other side to end, which may never happen. */
function close (socket: Duplex, text: string): void {
  socket.end(text)
  setTimeout(() => socket.destroy(), lingerMs).unref()
}

function reply (error: NodeJS.ErrnoException, request: IncomingMessage | null): string {
  const failure = errorOf(error, request)
  const llm = request === null ? null : knownRequest(request)
  const id = llm?.id ?? randomUUID()
  if (llm !== null) Object.assign(llm, { status: failure.statusCode, errorCode: failure.code, outcome: failure.outcome })
  const family = llm?.endpoint.family ?? familyOf({ headers: request?.headers ?? {} })
  const body = errorText(family, failure, id)
  const headers = { connection: 'close', ...errorHeaders(failure, id), 'content-length': Buffer.byteLength(body) }
  const status = `HTTP/1.1 ${failure.statusCode} ${STATUS_CODES[failure.statusCode]}`
  return [status, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`), '', body].join('\r\n')
}

// Codes of Node's HTTP parser and server.
function errorOf ({ code }: NodeJS.ErrnoException, request: IncomingMessage | null): GatewayError {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return gatewayError('request_timeout')
  // The caller closed its side. It may have done so on purpose, and still read.
  if (code === 'HPE_INVALID_EOF_STATE' && request !== null) return gatewayError('request_aborted')
  return gatewayError('bad_request', {}, { status: code === 'HPE_HEADER_OVERFLOW' ? 431 : 400 })
}
