import type { IncomingMessage, ServerResponse } from 'node:http'

/**
 * For a caller that waits for a word before it sends its body (RFC 9110 10.1.1): it gets that once somebody reads the body, and so not
 * where its head alone is refused, as with a wrong key. Such a connection ends with the refusal, for nobody could tell what comes on it
 * next from the body. What a refusal reads is only on its way past; it has its status by then.
 */
export function continueLate (request: IncomingMessage, response: ServerResponse): void {
  response.setHeader('connection', 'close')
  request.once('resume', () => {
    if (response.headersSent || response.statusCode >= 400) return
    if (!/\bclose\b/i.test(request.headers.connection ?? '')) response.removeHeader('connection')
    response.writeContinue()
  })
}
