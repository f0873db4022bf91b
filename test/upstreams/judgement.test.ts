import t from 'tap'
import { overloaded } from '../../plugins/core/errors/overloaded.js'
import type { KeptReply } from '../../plugins/core/upstream/upstream.js'
import { waitMsOf } from '../../plugins/protocols/refusals.js'
import { judge, needsBody, passedOn, usefulness } from '../../plugins/upstreams/judgement.js'
import { requestTo, upstreamOf, type Asked } from './request.js'

const upstream = upstreamOf({ url: 'http://h' })

function kept (status: number, body: string | object = '', headers: Record<string, unknown> = {}): KeptReply {
  const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
  return { status, headers, rawHeaders: [], body: bytes, text: bytes, error: null, upstream }
}

const chat = '/v1/chat/completions'
const plain = requestTo(chat, { body: '{"model":"m"}' })

function judged (reply: KeptReply, own = true, llm = plain): readonly unknown[] {
  const { result, cause, blames, waitMs } = judge({ kind: 'reply', reply }, own, 0, llm)
  return [result, cause, blames, waitMs]
}

function failed (code: string | undefined, sent: boolean, name = 'Error'): readonly unknown[] {
  const error = Object.assign(new Error('x'), { name }, code === undefined ? {} : { code })
  const { result, cause, blames } = judge({ kind: 'transport', error, sent }, true, 0, plain)
  return [result, cause, blames]
}

t.test('what a reply means for its upstream and for another attempt', async (t) => {
  const credential = ['credential', 'credential', 'credential', null]
  const cases: ReadonlyArray<readonly [reply: KeptReply, told: readonly unknown[]]> = [
    [kept(429, '', { 'retry-after': '20' }), ['rate_limited', '429', 'account_model', 20_000]],
    [kept(429), ['rate_limited', '429', 'account_model', null]],
    [kept(429, { error: { code: 'insufficient_quota' } }, { 'retry-after': '1' }), credential],
    [kept(429, { error: { details: { error_code: 'enforced_spend_limit_reached' } } }), credential],
    [kept(400, { error: { message: 'API key not valid. Please pass a valid API key.' } }), credential],
    [kept(400, { error: { message: 'Your credit balance is too low to access the Anthropic API.' } }), credential],
    [kept(403, { error: { message: 'Permission denied: Consumer api_key:x has been suspended.' } }), credential],
    [kept(401), credential],
    [kept(402), credential],
    [kept(403), ['credential', 'credential', 'credential_model', null]],
    [kept(400, { error: { message: 'max_tokens is too large' } }), ['client_error', null, null, null]],
    [kept(401, { error: { code: 'mismatched_organization' } }), ['client_error', null, null, null]],
    [kept(401, { error: { message: 'No such organization: org-x.', code: 'invalid_organization' } }), ['client_error', null, null, null]],
    [kept(403, { code: 'permission-denied', error: 'Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO' }), [
      'client_error', null, null, null,
    ]],
    [kept(403, { error: { code: 403, metadata: { reasons: ['violence'], flagged_input: 'x' } } }), ['client_error', null, null, null]],
    [kept(402, { error: { message: 'It requires fewer max_tokens. You requested up to 9 tokens, but can only afford 8.' } }), [
      'credential', 'credential', null, null,
    ]],
    [kept(402, { error: { message: 'It requires fewer max_tokens. You requested up to 9 tokens, but can only afford 0.' } }), [
      'credential', 'credential', 'credential', null,
    ]],
    [kept(429, { error: { message: 'Request too large for m in organization org-x on tokens per min (TPM): Limit 9, Requested 10.' } }), [
      'rate_limited', '429', null, null,
    ]],
    [kept(429, { error: { message: 'See https://help.aliyun.com/zh/model-studio/error-code#token-limit', code: 'insufficient_quota' } }), [
      'rate_limited', '429', 'account_model', null,
    ]],
    [kept(403, { error: { message: 'You do not have permission to access the File x or it may not exist.' } }), [
      'client_error', null, null, null,
    ]],
    [kept(503, '', { 'retry-after': '3' }), ['overloaded', '503', 'upstream', 3_000]],
    [kept(529), ['overloaded', '529', 'upstream', null]],
    [kept(500, '', { 'retry-after': '3' }), ['server_error', '500', 'upstream', null]],
    [kept(500, { error: { code: 'insufficient_quota' } }), ['server_error', '500', 'upstream', null]],
    [kept(524), ['server_error', '524', 'upstream', null]],
    [kept(307), ['invalid', 'connect', 'upstream', null]],
  ]
  for (const [reply, told] of cases) t.strictSame(judged(reply), told, `${reply.status} ${reply.body.toString()}`)
  for (const status of [400, 401, 402, 403]) {
    t.strictSame(judged(kept(status, 'api key not valid'), false), ['client_error', null, null, null], "a caller's own credential")
  }
  for (const status of [301, 302, 303, 307, 308, 400, 401, 402, 403, 429, 500, 529]) t.ok(needsBody(status))
  for (const status of [200, 304, 404, 408, 413, 422]) t.notOk(needsBody(status))
  t.match([200, 302, 304, 404, 429, 503, 500].map((status) => passedOn(status, { 'retry-after': '3' })), [
    { result: 'ok', blames: null },
    { result: 'invalid', blames: 'upstream' },
    { result: 'ok', blames: null },
    { result: 'client_error', blames: null },
    { result: 'rate_limited', blames: 'account_model', waitMs: 3_000 },
    { result: 'overloaded', blames: 'upstream', waitMs: 3_000 },
    { result: 'server_error', blames: 'upstream', waitMs: null },
  ])
})

t.test('what a provider only repeats of a request blames no credential', async (t) => {
  const refusing = ['client_error', null, null, null]
  const suspended = { error: { message: 'Unknown name "has been suspended": cannot bind' } }
  const invalid = { error: { message: 'Invalid value: \'API key not valid\'.' } }
  const cases: ReadonlyArray<readonly [what: string, said: object, url: string, asked: Asked]> = [
    ['a field', { error: { param: 'insufficient_quota' } }, chat, { body: '{"insufficient_quota":1}' }],
    ['a field of a form', { error: { param: 'insufficient_quota' } }, chat, { body: 'name="x"; name=insufficient_quota' }],
    ['a value in another case', invalid, chat, { body: '{"role":"api KEY not valid"}' }],
    ['a value whose letters are escaped', invalid, chat, { body: '{"role":"api\\u0020k\\u0065y not valid"}' }],
    ['a parameter of its address', suspended, `${chat}?has+been%20suspended=1`, {}],
  ]
  for (const [what, said, url, asked] of cases) {
    t.strictSame(judged(kept(400, said), true, requestTo(url, asked)), refusing, what)
    const both = { ...said, reason: 'API_KEY_INVALID' }
    const own = what.includes('escaped') ? 'client_error' : 'credential'
    t.equal(judged(kept(400, both), true, requestTo(url, asked))[0], own, `${what}, and words of its own`)
  }
})

t.test('what a provider repeats is found wherever it stands in a large request', async (t) => {
  const words = ['organization_usage_limit_exceeded', 'api\\u0020key']
  const said = kept(400, { error: { param: words[0], message: 'API key not valid' } })
  const long = 'x'.repeat(64 * 1024)
  for (const [word = '', ...others] of [[words[0], 'API key not valid'], [words[1]]]) {
    for (let before = 0; before <= word.length; before += 1) {
      const body = `${long.slice(before)}${word}${long}${others.join()}`
      t.equal(judged(said, true, requestTo(chat, { body }))[0], 'client_error', String(before))
    }
  }
  t.equal(judged(said, true, requestTo(chat, { body: long + words[0] + long }))[0], 'credential', 'and no more than that')
})

t.test('a failure before anything was sent is another one than after', async (t) => {
  t.strictSame(failed('ECONNREFUSED', false), ['connect', 'connect', 'upstream'])
  t.strictSame(failed('ECONNRESET', false), ['connect', 'connect', 'upstream'], 'within the handshake of TLS')
  t.strictSame(failed('ECONNRESET', true), ['reset', 'reset', 'upstream'])
  t.strictSame(failed('UND_ERR_SOCKET', true), ['reset', 'reset', 'upstream'])
  t.match(
    judge({ kind: 'transport', error: overloaded(), sent: false }, true, 0, plain),
    { result: 'queue', cause: 'connect', blames: 'nobody_asked' },
    'a queue of ours'
  )
  for (const code of ['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'ETIMEDOUT']) {
    t.strictSame(failed(code, true), ['timeout', 'timeout', 'upstream'])
  }
  t.strictSame(failed(undefined, true, 'HTTPParserError'), ['invalid', null, 'upstream'])
  t.match(judge({ kind: 'head', reply: kept(200) }, true, 0, plain), { result: 'first_event', cause: 'first_event', blames: 'upstream' })
})

t.test('when to come again is read as providers write it', async (t) => {
  const now = Date.parse('2026-11-22T00:00:00Z')
  const cases: ReadonlyArray<readonly [headers: Record<string, string>, body: string, ms: number | null]> = [
    [{ 'retry-after': '20' }, '', 20_000],
    [{ 'retry-after': '1.5' }, '', 1_500],
    [{ 'retry-after-ms': '250', 'retry-after': '1' }, '', 250],
    [{ 'retry-after': 'Sun, 22 Nov 2026 00:00:30 GMT' }, '', 30_000],
    [{ 'retry-after': 'Sun, 22 Nov 2020 00:00:30 GMT' }, '', 0],
    [{ 'retry-after': 'soon' }, '', null],
    [{ 'x-ratelimit-reset': '12' }, '', 12_000],
    [{ 'x-ratelimit-reset': String(now / 1_000 + 40) }, '', 40_000],
    [{ 'x-ratelimit-reset': 'never' }, '', null],
    [{ 'x-ratelimit-reset-requests': '6m0s', 'x-ratelimit-reset-tokens': '850ms' }, '', 850],
    [{ 'x-ratelimit-reset-tokens': '1h2m3.5s' }, '', 3_723_500],
    [{ 'anthropic-ratelimit-requests-reset': '2026-11-22T00:01:00Z' }, '', 60_000],
    [{}, '{"error":{"details":[{"retryDelay": "37.5s"}]}}', 37_500],
    [{}, '{}', null],
  ]
  for (const [headers, body, ms] of cases) t.equal(waitMsOf(headers, Buffer.from(body), now), ms, JSON.stringify(headers) + body)
})

t.test('of several replies the one that helps most: a limit with its end, then an overload, then any other', async (t) => {
  const replies = [
    kept(401), kept(503), kept(429, '', { 'retry-after': '20' }), kept(429), kept(429, '', { 'retry-after': '3' }), kept(200),
  ]
  const sorted = [...replies].sort((one, other) => usefulness(one, 0) - usefulness(other, 0))
  t.strictSame(sorted.map(({ status, headers }) => [status, headers['retry-after']]), [
    [429, '3'], [429, '20'], [429, undefined], [503, undefined], [200, undefined], [401, undefined],
  ])
})
