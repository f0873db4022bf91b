/** What a connection is told whose bytes are no HTTP request: it has no path, so no protocol's envelope fits better. */
import type { Duplex } from 'node:stream'
import { gatewayError } from '../core/errors/gateway-error.js'
import { families } from '../protocols/index.js'

// Codes of Node's HTTP parser and server.
const statuses: Readonly<Record<string, readonly [status: number, text: string]>> = {
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'Request Timeout'],
  HPE_HEADER_OVERFLOW: [431, 'Request Header Fields Too Large'],
}

/** Listener for the server's `clientError`. Nothing of the request is repeated. */
export function answerClientError (error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code !== 'ECONNRESET' && socket.writable) socket.end(reply(...statuses[String(error.code)] ?? [400, 'Bad Request']))
  else socket.destroy()
}

function reply (status: number, text: string): string {
  const facts = gatewayError('bad_request', {}, { status }).facts('')
  const body = JSON.stringify(families.openai.errorBody(facts))
  return [
    `HTTP/1.1 ${status} ${text}`, 'connection: close', 'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`, '', body,
  ].join('\r\n')
}
