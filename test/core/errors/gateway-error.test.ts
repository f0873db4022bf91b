import t from 'tap'
import { errorText, gatewayError } from '../../../plugins/core/errors/gateway-error.js'
import { families } from '../../../plugins/protocols/index.js'

t.test('an error tells of its request, and of no place in the code', async (t) => {
  const limit = Error.stackTraceLimit
  const error = gatewayError('body_too_large', { maxBodyBytes: 10 }, { param: 'input' })
  t.equal(Error.stackTraceLimit, limit, 'those of others have their traces')
  t.ok(error instanceof Error)
  t.match(error, { name: 'GatewayError', message: 'The request body is larger than 10 bytes.', statusCode: 413, param: 'input' })
  t.notMatch(error.stack, /\n/)
})

t.test('what an error tells one caller is told to no other', async (t) => {
  for (const family of Object.values(families)) {
    errorText(family, gatewayError('invalid_body', { reason: 'of-one' }, { param: 'of-one', retryAfterMs: 7_000 }), 'one')
    t.notMatch(errorText(family, gatewayError('invalid_body'), 'two'), /of-one|"one"/)
  }
})
