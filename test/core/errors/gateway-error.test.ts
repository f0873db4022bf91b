import t from 'tap'
import { errorText, gatewayError } from '../../../plugins/core/errors/gateway-error.js'
import { families } from '../../../plugins/protocols/index.js'

t.test('an error tells of its request, and of no place in the code', async (t) => {
  const limit = Error.stackTraceLimit
  const error = gatewayError('body_too_large', { maxBodyBytes: 10 }, { param: 'input' })
  t.equal(Error.stackTraceLimit, limit, 'those of others have their traces')
  t.ok(error instanceof Error)
  t.match(error, { name: 'GatewayError', message: 'Request body too large: the limit is 10 bytes.', statusCode: 413, param: 'input' })
  t.notMatch(error.stack, /\n/)
})

t.test('what an error tells one caller is told to no other', async (t) => {
  for (const family of Object.values(families)) {
    errorText(family, gatewayError('invalid_body', { reason: 'of-one' }, { param: 'of-one', retryAfterMs: 7_000 }), 'one')
    t.notMatch(errorText(family, gatewayError('invalid_body'), 'two'), /of-one|"one"/)
  }
})

// Words of the lists in pi 1.6, OpenClaw 2026.9 and Kimi Code 2.1.
t.test('agents that judge an error by its words try again where that helps', (t) => {
  const again = /connection error|rate limit|timed out/i
  const compact = /too many tokens|token limit exceeded|exceeds the limit/i
  for (const code of ['upstream_aborted', 'upstream_timeout', 'token_rate_exceeded'] as const) {
    const { message } = gatewayError(code, { limit: 10, more: '' })
    t.match(message, again, code)
    t.notMatch(message, compact, `${code} is no conversation that is too long`)
  }
  t.end()
})

t.test('agents that judge an error by its words know what is spent and what is too large', (t) => {
  t.match(gatewayError('insufficient_quota').message, /insufficient balance/i)
  t.match(gatewayError('budget_exceeded').message, /out of budget/i)
  t.match(gatewayError('body_too_large').message, /request (?:body )?too large/i)
  t.end()
})
