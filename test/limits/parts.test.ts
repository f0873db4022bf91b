import t from 'tap'
import { currentBuckets, readBucketId } from '../../plugins/limits/budgets.js'
import { chargeOf, chargesOf, recordOf } from '../../plugins/limits/charge.js'
import { inputEstimate, outputBound } from '../../plugins/limits/estimate.js'
import { Lease } from '../../plugins/limits/lease.js'
import { readOptions } from '../../plugins/limits/options.js'
import { Backlog } from '../../plugins/limits/backlog.js'
import { LastKnown } from '../../plugins/limits/last-known.js'
import { Outbox } from '../../plugins/limits/outbox.js'
import { hostError } from '../../plugins/limits/refusal.js'
import { Remaining } from '../../plugins/limits/remaining.js'
import { RemainingBudgets } from '../../plugins/limits/remaining-budgets.js'
import { watchLedger } from '../../plugins/limits/watch-ledger.js'
import { StoreDownError } from '../../plugins/core/balances/store-down.js'
import type { Ledger } from '../../plugins/core/money/ledger.js'
import { silentRecorder } from '../../plugins/core/recorder.js'
import type { SettledCost } from '../../plugins/core/money/cost.js'
import type { Pricing } from '../../plugins/core/money/pricing.js'
import { ModelCall } from '../../plugins/core/call/model-call.js'
import { memoryLedger } from '../../plugins/state/ledger/memory-ledger.js'
import { memoryBalances, type Balances, type Bucket, type HoldAsk, type Parties, type Settlement } from '../../plugins/state/index.js'
import { fillCall, type CallFields } from '../helpers/call-fields.js'
import { endpointOf, noTokens } from '../metrics/requests.js'
import { pricingBy } from './setup.js'

function request (endpoint: string, given: CallFields = {}): ModelCall {
  const llm = new ModelCall({
    kind: 'endpoint', endpoint: endpointOf(endpoint), url: '/', model: 'm', mountLength: 0, repair: null, keys: null,
  })
  return fillCall(llm, given)
}

const times = { bodyStartedAt: 0, bodyAt: 0, sentAt: 1, headersAt: 0, firstChunkAt: 0, lastChunkAt: 0, endedAt: 0 }
const sent = { times, upstreamReply: { status: 200 } }
const relayed = (bytes: number): CallFields => ({ times, upstreamReply: { status: 200, bytes } })
const tokens = { ...noTokens, input: 5, output: 7 }
const usage = { tokens }
const held = { tokens: 100, input: 20, goesOn: false }

t.test('a request is charged what it used, or what it held where that cannot be known', async (t) => {
  const tools = { usage: tokens, modalities: [], model: 'dear' } as const
  const advised = { tier: null, speed: null, region: null, counts: {}, tools, statedCost: null }
  const cases: ReadonlyArray<readonly [what: string, endpoint: string, given: CallFields, charged: number]> = [
    ['the real leaves', 'chat_completions', { ...sent, usage }, 12],
    ['the real leaves, also above what was held', 'chat_completions', { ...sent, usage: { tokens: { ...tokens, output: 500 } } }, 505],
    ['what an advisor used beside them', 'messages', { ...sent, usage: { ...usage, served: advised } }, 24],
    ['the real leaves of a stream whose caller left after all of them', 'messages', { ...sent, usage, abortedBy: 'client' }, 12],
    ['nothing where it never left', 'chat_completions', { errorCode: 'limit_store_unavailable' }, 0],
    ['the real leaves of a reply that a hook failed with', 'chat_completions', { ...sent, usage, errorCode: 'upstream_unreachable' }, 12],
    ['nothing where the upstream was never reached', 'chat_completions', { times, errorCode: 'upstream_unreachable' }, 0],
    ['nothing for an error of the upstream', 'chat_completions', { times, upstreamReply: { status: 500 } }, 0],
    ['what an error tells all the same', 'chat_completions', { times, upstreamReply: { status: 400 }, usage }, 12],
    ['nothing for what is not metered', 'messages.count_tokens', { ...sent, usage }, 0],
    ['nothing where usage is optional and absent', 'images.variations', sent, 0],
    ['what was relayed of it where it broke off', 'images.variations', { ...relayed(40), abortedBy: 'client' }, 30],
    ['its input where it was left before a reply', 'chat_completions', { times }, 20],
    ['its input where a host sent it and the caller left', 'chat_completions', { usage: { missing: 'client_abort' } }, 20],
    ['what was relayed of a stream, at 128 bytes a token', 'chat_completions', { ...relayed(1_280), stream: true }, 30],
    ['what was relayed of a document, at 4 bytes a token', 'chat_completions', relayed(41), 31],
    ['all that was held of a reply that nobody could unpack', 'chat_completions', { ...sent, usage: { missing: 'too_large' } }, 100],
    ['never all that was held and more', 'chat_completions', relayed(1e6), 100],
    [
      'what was seen of a stream that broke, where that is more',
      'messages',
      { ...sent, stream: true, usage: { tokens: { ...tokens, input: 60 }, partial: true } },
      67,
    ],
    [
      'what was relayed of a stream that broke, where that is more',
      'messages',
      { ...relayed(1_280), stream: true, usage: { tokens, partial: true } },
      30,
    ],
    [
      'what was relayed of one that need not tell its usage, and broke off',
      'generate_content.embedContent',
      { ...relayed(4_000), usage: { tokens, partial: true } },
      100,
    ],
    [
      'what a reply told that was packed too tightly, where that is more',
      'responses',
      { ...sent, usage: { tokens: { ...tokens, output: 500 }, partial: true, missing: 'too_large' } },
      505,
    ],
  ]
  for (const [what, endpoint, given, charged] of cases) t.equal(chargeOf(request(endpoint, given), held), charged, what)
  const onward: typeof cases = [
    ['all that was held where the work goes on', 'responses', sent, 100],
    ['all that was held where the caller left and the work goes on', 'responses', { times, abortedBy: 'client' }, 100],
    ['the real leaves where they were told', 'responses', { ...sent, usage }, 12],
    ['nothing for an error', 'responses', { times, upstreamReply: { status: 400 } }, 0],
  ]
  for (const [what, endpoint, given, charged] of onward) {
    t.equal(chargeOf(request(endpoint, given), { ...held, goesOn: true }), charged, what)
  }
})

t.test('a budget in money is charged what the reply cost, or an estimate', async (t) => {
  const amounts = { amount: '0.00000004', billionths: 40, currency: 'USD', parts: [] }
  const costs = (unpriced: boolean): SettledCost => ({
    ...amounts, value: 4e-8, unpriced, exact: { ...amounts, unpriced, entry: null, by: null, price: null, factor: '1' },
  })
  const [priced, unpriced] = [costs(false), costs(true)]
  const pictures = { served: { tier: null, speed: null, region: null, counts: { image: 2 }, tools: null, statedCost: null } }
  // A token of either kind may cost a billionth.
  const strict = pricingBy((_, input, output) => input + output)
  const cases: ReadonlyArray<readonly [what: string, given: CallFields, pricing: Pricing, charged: number]> = [
    ['nothing, where it was not sent', {}, strict, 0],
    ['what it cost, whatever its tokens may', { ...sent, usage: { tokens: { ...tokens, output: 50 } }, cost: priced }, strict, 40],
    [
      'what it may have cost, where some of it has no price',
      { ...sent, usage: { tokens: { ...tokens, output: 50 } }, cost: unpriced },
      strict,
      55,
    ],
    ['what has a price, where that is more', { ...sent, usage, cost: unpriced }, strict, 40],
    ['no more than was held', { ...sent, usage: { tokens: { ...tokens, output: 5_000 } }, cost: unpriced }, strict, 90],
    ['what was held, where nobody knows', { ...sent, usage, cost: unpriced }, { ...strict, atMost: () => null }, 90],
    [
      'what was relayed of pictures that have none',
      { ...relayed(200), usage: { ...pictures, tokens: noTokens }, cost: unpriced },
      strict,
      70,
    ],
    ['what has a price beside them', { ...relayed(4), usage: { ...pictures, tokens: noTokens }, cost: unpriced }, strict, 40],
    [
      'what has a price, where that is allowed',
      { ...sent, usage: { tokens: { ...tokens, output: 50 } }, cost: unpriced },
      { ...strict, unpriced: 'allow' },
      40,
    ],
    ['what was relayed of a reply that broke off', { ...relayed(200), usage: { tokens, partial: true }, cost: unpriced }, strict, 70],
    ['all that was held, where the rest is not seen', { ...relayed(4), usage: { missing: 'too_large' } }, strict, 90],
    [
      'what it told, where that is more',
      { ...relayed(4), usage: { missing: 'too_large' }, cost: { ...priced, billionths: 120 } },
      strict,
      120,
    ],
    ['pictures by the piece', { ...relayed(4_000), usage: pictures, cost: priced }, strict, 40],
    ['pictures of a reply that broke off', { ...relayed(4_000), usage: pictures, cost: priced, abortedBy: 'client' }, strict, 90],
    ['pictures of a reply that failed', { ...relayed(4_000), usage: { ...pictures, replyFailed: true }, cost: priced }, strict, 90],
    ['pictures beside some tokens', { ...relayed(4_000), usage: { ...pictures, tokens, partial: true }, cost: priced }, strict, 90],
    [
      'a reply without any',
      { ...relayed(4_000), usage: { served: { ...pictures.served, counts: { image: 0 } } }, cost: priced },
      strict,
      90,
    ],
    ['pictures that nobody has a price of', { ...relayed(4_000), usage: pictures }, strict, 90],
    ['a reply that tells neither', { ...relayed(4_000), cost: priced }, strict, 90],
  ]
  for (const [what, given, pricing, charged] of cases) {
    t.equal(chargesOf(request('images', given), { ...held, cost: 90 }, pricing).cost, charged, what)
  }
})

t.test('the ledger keeps what was sent and metered, and only fields that apply', async (t) => {
  t.equal(recordOf(request('chat_completions'), { tokens: 0, cost: 0 }, []), null, 'nothing of what never left')
  t.equal(recordOf(request('messages.count_tokens', sent), { tokens: 0, cost: 0 }, []), null, 'nothing of what is not metered')
  t.match(recordOf(request('messages', sent), { tokens: 9, cost: 0 }, ['key']), {
    key: null, group: null, model: 'm', outcome: 'ok', ...noTokens, charged: 9, late: ['key'],
  })
  t.match(
    recordOf(request('messages', { ...sent, usage: { tokens, responseModel: 'real' }, outcome: 'truncated' }), { tokens: 12, cost: 0 }, []),
    { model: 'm', outcome: 'truncated', ...tokens },
    'the name that tokens_total has'
  )
  const unasked = request('messages', { ...sent, model: null, usage: { responseModel: 'real' } })
  t.match(recordOf(unasked, { tokens: 12, cost: 0 }, []), { model: 'real' })
  t.equal(recordOf(request('messages', { ...sent, model: null }), { tokens: 12, cost: 0 }, [])?.model, null)
  t.equal(recordOf(request('messages', { ...sent, model: 'm'.repeat(1_000) }), { tokens: 12, cost: 0 }, [])?.model?.length, 128)
  t.match(recordOf(request('messages', { ...sent, routing: { sentModel: 'theirs' } }), { tokens: 12, cost: 0 }, []), {
    model: 'm', upstreamModel: 'theirs',
  })
})

t.test('the ledger keeps what a cost can be worked out from again', async (t) => {
  const tools = { usage: tokens, modalities: [] }
  const told = { speed: 'fast', region: 'eu', counts: { search: 2 }, tools, statedCost: '0.5' }
  const modalities = [{ direction: 'input' as const, modality: 'audio', tokens: 3 }]
  const full = request('messages', { ...sent, usage: { tokens, modalities, served: { tier: 'flex', ...told } } })
  t.match(recordOf(full, { tokens: 12, cost: 0 }, []), { bill: { ...told, modalities } })
  const nothing = { tier: null, speed: null, region: null, counts: {}, tools: null, statedCost: null }
  const { bill = {} } = recordOf(request('messages', { ...sent, usage: { tokens, served: nothing } }), { tokens: 12, cost: 0 }, []) ?? {}
  t.strictSame(Object.keys(bill), ['startedAt'], 'and nothing that was not told')
})

t.test('the ledger keeps the budgets of a party whose store was away', async (t) => {
  const bucket = { id: 'cost day UTC 2027-01-31', unit: 'cost', amount: 10, endsAt: 0, scope: 'group' } as const
  t.match(recordOf(request('messages', { ...sent, usage }), { tokens: 12, cost: 5 }, ['group'], [bucket]), {
    late: ['group'], lateBuckets: [bucket], chargedCost: 5,
  })
})

t.test('a time zone is the same one in whatever letters it is written', async (t) => {
  const idIn = (timezone: string): unknown => {
    return currentBuckets({ budgets: [{ tokens: 1, period: 'day', timezone }] }, '', Date.UTC(2026, 10, 26, 12))?.[0]?.id
  }
  t.equal(idIn('europe/BERLIN'), 'tokens day Europe/Berlin 2026-11-26')
  t.equal(idIn('utc'), 'tokens day UTC 2026-11-26')
  t.equal(idIn('Asia/Kolkata'), 'tokens day Asia/Kolkata 2026-11-26', 'one that has another name by now is counted on')
})

t.test('a budget that nothing is known of has its whole amount left', async (t) => {
  t.strictSame(readBucketId(''), { unit: 'tokens', currency: null, period: 'total', timezone: 'UTC', start: '' })
  const berlin = { unit: 'cost', period: 'day', timezone: 'Europe/Berlin', start: '2027-01-31' }
  t.strictSame(readBucketId('cost:EUR day Europe/Berlin 2027-01-31'), { ...berlin, currency: 'EUR' })
  t.strictSame(readBucketId('cost day Europe/Berlin 2027-01-31'), { ...berlin, currency: null }, 'as in records of older versions')
  t.equal(readBucketId('cost never').period, 'total')
  const budgets = new RemainingBudgets(new LastKnown())
  const bucket: Bucket = { id: 'tokens day UTC 2027-01-31', unit: 'tokens', amount: 10, endsAt: 0 }
  const parties = { group: 'g', groupLimits: {}, groupBuckets: [bucket], key: 'k', keyLimits: {} }
  t.equal(budgets.left('g', bucket), 10)
  budgets.note(parties, { group: null, key: null, buckets: [4] })
  t.equal(budgets.left('g', bucket), 4)
  budgets.note({ ...parties, groupBuckets: [{ ...bucket, amount: 7 }] }, { group: null, key: null })
  t.equal(budgets.left('g', bucket), 7, 'all of it where the store does not tell')
  t.equal(budgets.left('g', { ...bucket, id: 'tokens day UTC 2027-02-01' }), 10, 'of another period')
})

t.test('a settlement that the store throws at waits like one that fails', async (t) => {
  const balances = memoryBalances()
  let throws = true
  const settle: Balances['settle'] = (settlement) => {
    if (throws) throw new Error('no')
    return balances.settle(settlement)
  }
  const backlog = new Backlog({ ...balances, settle }, { maxWaiting: 10, retryMs: 60_000 })
  const outbox = new Outbox(backlog, { onLost () {} })
  outbox.send({ id: 'a', group: 'g', key: 'k', tokens: 1, late: [] })
  await new Promise(setImmediate)
  t.equal(backlog.empty, false)
  throws = false
  await outbox.close()
  t.equal(backlog.empty, true)
})

t.test('a request may use its own tokens and the output that it asks for, within bounds', async (t) => {
  const sizes = { maxInputTokens: 10, otherOutput: 70, outputByModel: new Map([['m', 50]]) }
  t.equal(inputEstimate(request('messages'), undefined, sizes), 0)
  t.equal(inputEstimate(request('messages'), '9', sizes), 3, 'by its declared length where nobody read it')
  t.equal(inputEstimate(request('messages', { body: { bytes: Buffer.alloc(5) } }), '900', sizes), 2)
  t.equal(inputEstimate(request('messages', { body: { bytes: Buffer.alloc(500) } }), '500', sizes), 10)
  const gemini = (config: object, name = 'generationConfig'): ModelCall => {
    return request('generate_content.generateContent', { body: { json: { [name]: config } } })
  }
  const cases: ReadonlyArray<readonly [ModelCall, number]> = [
    [request('embeddings'), 0],
    [request('messages'), 50],
    [request('messages', { model: null }), 70],
    [request('chat_completions', { body: { json: { max_tokens: 60 }, substitutes: ['m', 'other'] } }), 60],
    [request('chat_completions', { model: 'other', body: { substitutes: ['m'] } }), 70],
    [request('messages', { body: { json: { max_tokens: 3 } } }), 3],
    [request('messages', { body: { json: { max_tokens: 500 } } }), 50],
    [request('messages', { body: { json: [3] } }), 50],
    [request('messages', { body: { json: { max_tokens: -3 } } }), 50],
    [request('messages', { body: { json: { max_tokens: 1.5 } } }), 50],
    [request('responses', { body: { json: { max_output_tokens: 4 } } }), 4],
    [request('responses.compact', { body: { json: { max_output_tokens: 4 } } }), 4],
    [request('images', { body: { json: { n: 2 } } }), 100],
    [request('chat_completions', { body: { json: { max_tokens: 2, n: 1e9 } } }), 256],
    [gemini({ maxOutputTokens: 7, candidateCount: 2 }), 14],
    [gemini({ max_output_tokens: 7 }), 7],
    [gemini({ max_output_tokens: 7, candidate_count: 2 }, 'generation_config'), 14],
    [gemini({ maxOutputTokens: 1, max_output_tokens: 7, candidateCount: 1, candidate_count: 3 }), 21],
  ]
  for (const [llm, output] of cases) t.equal(outputBound(llm, sizes), output)
})

t.test('options are checked', async (t) => {
  const wrong = [
    [{ balanceStatus: 500 }, /limits\.balanceStatus must be 402, 403 or 429/],
    [{ leasePercent: 101 }, /limits\.leasePercent must be at most 100/],
    [{ leasePercent: 0 }, /limits\.leasePercent/],
    [{ maxOutputTokens: { m: -1 } }, /limits\.maxOutputTokens\.m must be a whole number/],
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
      message: 'The budget of this API key for its period is spent, or what is left is less than this request may cost. ' +
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

t.test('a lease is a share of every limit', async (t) => {
  const ask = (id: string, given: Partial<HoldAsk>): HoldAsk => ({
    id, group: 'g', groupLimits: {}, key: 'k', keyLimits: {}, requests: 1, tokens: 1, floor: 0, ...given,
  })
  const nothing = { group: null, key: null }
  const whole = ({ amount }: Bucket): number => amount
  const balance = new Lease(10)
  t.match(balance.hold(ask('a', { tokens: 10, groupLimits: { balance: 100 } }), nothing, whole), { ok: true })
  t.match(
    balance.hold(ask('b', { groupLimits: { balance: 100 } }), { group: 1_000, key: null }, whole),
    { ok: false, limit: 'balance', allowed: 10 },
    'the slice stays what it was'
  )
  t.match(
    new Lease(10).hold(ask('a', { groupLimits: { balance: 100 } }), { group: 55, key: null }, whole),
    { ok: true, left: { group: 4 } },
    'of what was left'
  )
  t.match(
    new Lease(10).hold(ask('a', { keyLimits: { balance: 100 } }), { group: null, key: -5 }, whole),
    { ok: false, allowed: 0 },
    'nothing of an overdrawn one'
  )
  for (const limit of ['requestsPerMinute', 'concurrency'] as const) {
    const rates = new Lease(10)
    t.match(rates.hold(ask('a', { keyLimits: { [limit]: 3 } }), nothing, whole), { ok: true }, 'at least one')
    t.match(rates.hold(ask('b', { keyLimits: { [limit]: 3 } }), nothing, whole), { ok: false, allowed: 1 })
  }
  t.match(new Lease(10).hold(ask('a', { tokens: 11, keyLimits: { tokensPerMinute: 100 } }), nothing, whole), { ok: false, allowed: 10 })
  const bucket: Bucket = { id: 'cost day UTC 2026-11-22', unit: 'cost', amount: 1_000, endsAt: null }
  const budgets = new Lease(10)
  const inBudget = { groupLimits: { budgets: [] }, groupBuckets: [bucket], keyLimits: { budgets: [] }, keyBuckets: [bucket] }
  t.match(
    budgets.hold(ask('a', { cost: 51, ...inBudget }), nothing, () => 500), { ok: false, limit: 'budget', scope: 'group', allowed: 50 },
    'of what was left of a group, of all of a key'
  )
  t.match(budgets.hold(ask('a', { cost: 50, ...inBudget }), nothing, () => 500), { ok: true, left: { buckets: [50, 0] } })
})

t.test('what is left is known of groups and keys that have a balance', async (t) => {
  const remaining = new Remaining()
  const parties = { group: 'g', groupLimits: { balance: 100 }, key: 'k', keyLimits: { balance: 50 } }
  t.same(remaining.left(parties), { group: null, key: null })
  remaining.giveBack(parties, { tokens: 5, cost: 0 })
  remaining.note({ ...parties, groupLimits: {}, keyLimits: {} }, { group: null, key: null })
  remaining.note(parties, { group: null, key: null })
  t.same(remaining.samples(), [])
  remaining.note(parties, { group: 40, key: 20 })
  remaining.giveBack(parties, { tokens: 10, cost: 0 })
  t.same(remaining.left(parties), { group: 50, key: 30 })
  remaining.note({ ...parties, group: 'none', groupLimits: { balance: 0 } }, { group: -1, key: null })
  t.same(remaining.samples(), [{ labels: { group: 'g' }, value: 0.5 }, { labels: { group: 'none' }, value: 0 }])
})

t.test('an app knows what another one of the same store heard last, and tells only what it asked for', (t) => {
  const lastKnown = new LastKnown()
  const [before, after] = [new Remaining(lastKnown), new Remaining(lastKnown)]
  const bucket = { id: 'tokens day UTC 2027-01-01', unit: 'tokens', amount: 10, endsAt: null } as const
  const parties: Parties = {
    group: 'g', groupLimits: { balance: 100 }, groupBuckets: [bucket], key: 'k', keyLimits: { balance: 50 }, keyBuckets: undefined,
  }
  before.note(parties, { group: 40, key: 20, buckets: [4] })
  t.same(after.left(parties), { group: 40, key: 20 })
  t.equal(after.budgets.left('g', { ...bucket }), 4)
  t.same([after.samples(), after.budgets.samples()], [[], []])
  after.note({ ...parties, groupBuckets: [{ ...bucket }] }, { group: 30, key: 10, buckets: [3] })
  t.same(before.left(parties), { group: 30, key: 10 })
  t.equal(before.budgets.left('g', bucket), 3)
  t.same(after.samples(), [{ labels: { group: 'g' }, value: 0.3 }])
  t.same(after.budgets.samples(), [{ labels: { group: 'g', period: 'day' }, value: 0.3 }])
  t.end()
})

t.test('what waits when its app ends goes on with another app of the same store, and is lost with the last one', async (t) => {
  let away = true
  const settle = async (): Promise<void> => { if (away) throw new StoreDownError('does not answer') }
  const backlog = new Backlog({ ...memoryBalances(), settle }, { maxWaiting: 9, retryMs: 60_000 })
  const heard: string[] = []
  const open = (name: string) => new Outbox(backlog, {
    onLost: ({ id }) => heard.push(`${name} lost ${id}`), onSettled: ({ id }) => heard.push(`${name} settled ${id}`),
  })
  const settlement = (id: string): Settlement => ({ id, group: 'g', key: 'k', tokens: 1, late: [] })
  const [first, second] = [open('first'), open('second')]
  first.send(settlement('a'))
  second.send(settlement('b'))
  await first.close()
  const third = open('third')
  t.strictSame(heard, [])
  away = false
  await backlog.flush()
  t.strictSame(heard.splice(0).sort(), ['second settled a', 'second settled b'])
  away = true
  second.send(settlement('c'))
  await second.close()
  const late = third.close()
  const joined = open('joined')
  await late
  t.strictSame(heard, [], 'one that joins meanwhile has it, too')
  await joined.close()
  t.strictSame(heard, ['joined lost c'])
  t.ok(backlog.empty)
})

t.test('a settlement that is being sent again still waits: no share is given anew before the store has it', async (t) => {
  const answers: Array<(error?: Error) => void> = []
  const settle = async (): Promise<void> => await new Promise((
    resolve, reject
  ) => answers.push((error) => error === undefined ? resolve() : reject(error)))
  const backlog = new Backlog({ ...memoryBalances(), settle }, { maxWaiting: 1, retryMs: 60_000 })
  const outbox = new Outbox(backlog, { onLost: () => {} })
  outbox.send({ id: 'a', group: 'g', key: 'k', tokens: 1, late: [] })
  answers[0]?.(new Error('away'))
  while (backlog.empty) await new Promise(setImmediate)
  for (const error of [new Error('away'), undefined]) {
    const flushed = backlog.flush()
    t.same({ empty: backlog.empty, full: backlog.full }, { empty: false, full: true })
    answers.pop()?.(error)
    await flushed
    t.equal(backlog.empty, error === undefined)
  }
  await outbox.close()
})

t.test('a settlement that the store refuses is put aside, and told; one that waits for the store is not', async (t) => {
  let isAway = true
  let tries = 0
  const settled: string[] = []
  const lost: unknown[] = []
  const settle = async ({ id }: Settlement): Promise<void> => {
    await new Promise(setImmediate)
    if (id === 'refused') tries += 1
    if (id === 'refused') throw new StoreDownError('failed', { refused: true })
    if (isAway) throw new StoreDownError('does not answer')
    settled.push(id)
  }
  const balances = { ...memoryBalances(), settle }
  const backlog = new Backlog(balances, { maxWaiting: 9, retryMs: 1 })
  const outbox = new Outbox(backlog, { onLost: ({ id }, error) => lost.push([id, error]) })
  const alive = setInterval(() => {}, 1_000)
  t.teardown(() => clearInterval(alive))
  for (const id of ['refused', 'waits']) outbox.send({ id, group: 'g', key: 'k', tokens: 1, late: [] })
  while (lost.length === 0) await new Promise((resolve) => setTimeout(resolve, 1))
  t.match(lost, [['refused', { refused: true }]])
  t.ok(tries > 1, 'it may have been refused by chance')
  t.notOk(backlog.empty)
  isAway = false
  while (!backlog.empty) await new Promise((resolve) => setTimeout(resolve, 1))
  t.same(settled, ['waits'])
  await outbox.close()
  t.equal(lost.length, 1)
})

t.test('settlements wait for a store that is away', async (t) => {
  let away = true
  const asked: string[] = []
  const settled: string[] = []
  const lost: string[] = []
  const balances: Balances = {
    ...memoryBalances(),
    settle: async ({ id }) => {
      asked.push(id)
      await new Promise(setImmediate)
      if (away) throw new Error('away')
      settled.push(id)
    },
  }
  const settlement = (id: string): Settlement => ({ id, group: 'g', key: 'k', tokens: 1, late: [] })
  const backlog = new Backlog(balances, { maxWaiting: 3, retryMs: 5 })
  const outbox = new Outbox(backlog, { onLost: ({ id }) => lost.push(id) })
  const alive = setInterval(() => {}, 1_000)
  t.teardown(() => clearInterval(alive))
  for (const id of ['a', 'b', 'c', 'd']) outbox.send(settlement(id))
  while (lost.length === 0 || asked.length < 9) await new Promise((resolve) => setTimeout(resolve, 5))
  t.same({ settled, lost, full: backlog.full, empty: backlog.empty }, { settled: [], lost: ['d'], full: true, empty: false })
  away = false
  while (!backlog.empty || settled.length < 3) await new Promise((resolve) => setTimeout(resolve, 5))
  t.same(settled.sort(), ['a', 'b', 'c'])
  away = true
  outbox.send(settlement('e'))
  await outbox.close()
  t.same(lost, ['d', 'e'], 'what is left at the end is told')
  await new Outbox(backlog, { onLost: () => {} }).close()
})

t.test('a disk that goes on refusing records is told once, and each refusal counted', async (t) => {
  const heard = new Set<(error: unknown, again: boolean) => void>()
  const onTrouble: Ledger['onTrouble'] = (listener) => {
    heard.add(listener)
    return () => heard.delete(listener)
  }
  let counted = 0
  const lines: unknown[] = []
  const recorder = { ...silentRecorder, ledgerFailed: () => { counted += 1 } }
  const log = Object({ error: (fields: unknown) => lines.push(fields) })
  const end = watchLedger({ ...memoryLedger(), onTrouble }, recorder, log)
  for (const again of [false, true, true]) heard.forEach((listener) => listener(new Error('full'), again))
  end()
  t.match([counted, lines.length, lines, heard.size], [3, 1, [{ err: { message: 'full' } }], 0])
})
