import t from 'tap'
import { mayNameAccount, namesAccount, namesRequest, waitMsOf } from '../../plugins/protocols/refusals.js'

const now = Date.parse('2026-11-22T00:00:00Z')

t.test('a window tells its end in seconds, as a point in time in seconds or milliseconds, as a duration or a date', async (t) => {
  const cases: ReadonlyArray<readonly [headers: Record<string, string>, ms: number | null]> = [
    // OpenRouter: one that was read as seconds kept an account out for the longest time there is, an hour.
    [{ 'x-ratelimit-reset': String(now + 40_000) }, 40_000],
    [{ 'x-ratelimit-reset': String(now - 40_000) }, 0],
    [{ 'x-ratelimit-reset': String(now / 1_000 + 40) }, 40_000],
    // What `Date.parse` takes for a month of 2001, which is over.
    [{ 'x-ratelimit-reset-requests': '12' }, 12_000],
    [{ 'x-ratelimit-reset-tokens': '7.5', 'x-ratelimit-reset-requests': '12' }, 7_500],
    [{ 'x-ratelimit-reset': '1m30s' }, 90_000],
    [{ 'x-ratelimit-reset': '2026-11-22T00:01:00Z' }, 60_000],
    [{ 'x-ratelimit-reset': '1 fortnight' }, null],
    ...['requests', 'input-tokens', 'output-tokens'].map((what) =>
      [{ [`anthropic-ratelimit-${what}-reset`]: '2026-11-22T00:01:00Z' }, 60_000] as const),
  ]
  for (const [headers, ms] of cases) t.equal(waitMsOf(headers, Buffer.alloc(0), now), ms, JSON.stringify(headers))
})

t.test('an account that is spent, stopped or unknown is told by these words, and a request by others', async (t) => {
  for (const code of [
    'insufficient_quota', 'credit_balance_exhausted', 'organization_usage_limit_exceeded', 'organization_spend_limit_exceeded',
    'project_spend_limit_exceeded', 'enforced_spend_limit_reached', 'account_deactivated', 'billing_hard_limit_reached', 'API_KEY_INVALID',
    'BILLING_DISABLED', 'billing_not_active', 'exceeded_current_quota_error', 'Arrearage',
  ]) {
    t.ok(namesAccount(Buffer.from(JSON.stringify({ error: { message: 'm', code } })), () => []), code)
    t.notOk(namesAccount(Buffer.from(JSON.stringify({ error: { message: `not ${code}` } })), () => []), `${code} within a sentence`)
  }
  for (const status of [400, 403, 429]) t.ok(mayNameAccount(status), String(status))
  for (const told of [
    { code: 'mismatched_organization' }, { code: 'invalid_organization' }, { code: 'mismatched_project' }, { code: 'invalid_project' },
    { reason: 'USER_PROJECT_DENIED' }, { message: 'You do not have permission to access the File x' },
    { message: 'CachedContent not found (or permission denied)' },
  ]) {
    t.ok(namesRequest(Buffer.from(JSON.stringify({ error: told }))), JSON.stringify(told))
    t.notOk(namesAccount(Buffer.from(JSON.stringify({ error: told })), () => []), JSON.stringify(told))
  }
})
