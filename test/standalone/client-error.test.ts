import { PassThrough } from 'node:stream'
import t from 'tap'
import { answerClientError } from '../../plugins/standalone/client-error.js'

function answer (code: string, socket = new PassThrough()): PassThrough {
  answerClientError(Object.assign(new Error('c4nary'), { code }), socket)
  return socket
}

t.test('the status tells what was wrong, the body repeats nothing', async (t) => {
  const cases = {
    ERR_HTTP_REQUEST_TIMEOUT: 'HTTP/1.1 408 Request Timeout',
    HPE_HEADER_OVERFLOW: 'HTTP/1.1 431 ',
    HPE_INVALID_METHOD: 'HTTP/1.1 400 Bad Request',
  }
  for (const [code, start] of Object.entries(cases)) {
    const text = String(answer(code).read())
    t.ok(text.startsWith(start), code)
    t.notMatch(text, 'c4nary')
    t.type(JSON.parse(text.split('\r\n\r\n')[1] ?? ''), 'object')
  }
})

t.test('a socket that is gone is only let go', async (t) => {
  t.ok(answer('ECONNRESET').destroyed)
  const ended = new PassThrough()
  ended.end()
  t.ok(answer('HPE_INVALID_METHOD', ended).destroyed)
})
