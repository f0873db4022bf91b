import t from 'tap'
import { waitMsOf } from '../../plugins/protocols/refusals.js'

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
  ]
  for (const [headers, ms] of cases) t.equal(waitMsOf(headers, Buffer.alloc(0), now), ms, JSON.stringify(headers))
})
