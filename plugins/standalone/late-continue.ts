import type { IncomingMessage, ServerResponse } from 'node:http'

/**
 * For a caller that waits for `100 Continue` before it sends its body (RFC 9110 10.1.1): it is sent once the body is read, and so not if
 * the head alone is refused, as with a wrong key. Such a connection ends with the refusal, because what comes on it next could not be told
 * from the body. A refusal that discards the body already has its status by then.
 */
export function continueLate (request: IncomingMessage, response: ServerResponse): void {
  response.setHeader('connection', 'close')
  request.once('resume', () => {
    if (response.headersSent || response.statusCode >= 400) return
    if (!/\bclose\b/i.test(request.headers.connection ?? '')) response.removeHeader('connection')
    response.writeContinue()
  })
}
