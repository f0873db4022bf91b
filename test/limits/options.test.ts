import t from 'tap'
import { currentBuckets } from '../../plugins/limits/budgets.js'
import { readOptions } from '../../plugins/limits/options.js'
import { hostError } from '../../plugins/limits/refusal.js'

t.test('a time zone is the same one in whatever letters it is written', async (t) => {
  const idIn = (timezone: string): unknown => {
    return currentBuckets({ budgets: [{ tokens: 1, period: 'day', timezone }] }, '', Date.UTC(2026, 10, 26, 12))?.[0]?.id
  }
  t.equal(idIn('europe/BERLIN'), 'tokens day Europe/Berlin 2026-11-26')
  t.equal(idIn('utc'), 'tokens day UTC 2026-11-26')
  t.equal(idIn('Asia/Kolkata'), 'tokens day Asia/Kolkata 2026-11-26', 'one that has another name by now is counted on')
})

t.test('options are checked', async (t) => {
  const wrong = [
    [{ balanceStatus: 500 }, /limits\.balanceStatus must be 402, 403 or 429/],
    [{ leasePercent: 101 }, /limits\.leasePercent must be at most 100/],
    [{ leasePercent: 0 }, /limits\.leasePercent/],
    [{ maxOutputTokens: { m: -1 } }, /limits\.maxOutputTokens\.m must be a whole number/],
    [{ maxOutputTokens: { m: 0 } }, /limits\.maxOutputTokens\.m must be a whole number of at least 1/],
    [{ maxInputTokens: 0 }, /limits\.maxInputTokens must be a whole number of at least 1/],
    [{ maxOutputTokens: { '*': 1, 'm-*': 1 } }, /limits\.maxOutputTokens\.m-\* must be the whole name of a model/],
    [{ balances: { read: 1 } }, /limits\.balances has no method hold/],
    [{ ledger: {} }, /limits\.ledger has no method append/],
    [{ authorize: 7 }, /limits\.authorize must be a function/],
    [{ weather: 7 }, /limits\.weather is not known/],
  ] as const
  for (const [options, message] of wrong) {
    t.throws(() => readOptions(JSON.parse(JSON.stringify(options))), { code: 'LLM_GATEWAY_OPTION', message })
  }
  t.match(readOptions({ maxOutputTokens: { '*': 3, m: 4 } }).sizes, { otherOutput: 3, maxInputTokens: 200_000 })
})

t.test('a host refuses in the same words', async (t) => {
  t.match(hostError({ code: 'access_denied' }, 403), { error: { statusCode: 403, code: 'access_denied' }, limit: null })
  t.match(hostError({ code: 'insufficient_quota' }, 402), { error: { statusCode: 402 }, limit: 'balance' })
  t.match(hostError({ code: 'budget_exceeded' }, 402), {
    error: {
      statusCode: 402,
      message: 'Out of budget: the budget of this API key for its period is spent, or what is left is less than this request may cost. ' +
        'Ask whoever set it when it resets.',
    },
    limit: 'budget',
  })
  t.match(hostError({ code: 'budget_exceeded', retryAfterMs: 60_000 }, 403), {
    error: { statusCode: 403, message: /cost\. It resets at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\.$/ },
  })
  t.match(hostError({ code: 'request_rate_exceeded', limit: 5, retryAfterMs: 700 }, 403), {
    error: { statusCode: 429, retryAfterMs: 700, message: /the limit is 5 a minute/ }, limit: 'requests',
  })
})
