import t from 'tap'
import { errorText } from '../../../plugins/core/errors/error-text.js'
import { gatewayError, type GatewayError } from '../../../plugins/core/errors/gateway-error.js'
import { errorTable, type ErrorCode } from '../../../plugins/core/errors/table.js'
import { families, type Family } from '../../../plugins/protocols/index.js'

const codes = Object.keys(errorTable) as ErrorCode[]

function written (family: Family, error: GatewayError, id: string): string {
  return JSON.stringify(family.errorBody(error.facts(id)))
}

for (const family of Object.values(families)) {
  t.test(`errors of ${family.name} are the same text, kept or written anew`, async (t) => {
    for (const code of codes) {
      for (const id of ['first', 'second', 'third']) t.equal(errorText(family, gatewayError(code), id), written(family, gatewayError(code), id), code)
    }
  })

  t.test(`what an error of ${family.name} tells one caller is told to no other`, async (t) => {
    for (const code of codes) {
      const details = [
        gatewayError(code, { path: '/of-one', reason: 'of-one', expected: 'of-one', limit: 'of-one' }, { param: 'of-one', retryAfterMs: 7_000 }),
        gatewayError(code, { path: '/of-one', reason: 'of-one', expected: 'of-one', limit: 'of-one' }),
        gatewayError(code, {}, { status: 499 }),
      ]
      for (const error of details) t.equal(errorText(family, error, 'one'), written(family, error, 'one'), code)
      const next = errorText(family, gatewayError(code), 'next')
      t.equal(next, written(family, gatewayError(code), 'next'), code)
      t.notMatch(next, /of-one|"one"|499/)
    }
  })
}

t.test('an error with details that comes first leaves nothing behind', async (t) => {
  const family: Family = { ...families.openai }
  for (const code of codes) {
    errorText(family, gatewayError(code, { reason: 'of-one' }, { param: 'of-one' }), 'one')
    t.notMatch(errorText(family, gatewayError(code), 'two'), /of-one/, code)
  }
})

t.test('what is kept of an error is told by no log line', async (t) => {
  t.notOk(Object.keys(gatewayError('invalid_api_key')).includes('isFixed'))
})
