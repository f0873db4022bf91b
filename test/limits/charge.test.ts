import t from 'tap'
import { chargesOf, isRecorded, recordOf } from '../../plugins/limits/charge.js'
import { owesNothing } from '../../plugins/limits/ticket.js'
import type { SettledCost } from '../../plugins/core/money/cost.js'
import type { Pricing } from '../../plugins/core/money/pricing.js'
import type { CallFields } from '../helpers/call-fields.js'
import { noTokens } from '../metrics/requests.js'
import { callOf, pricingBy } from './setup.js'

const times = { bodyStartedAt: 0, bodyAt: 0, sentAt: 1, headersAt: 0, firstChunkAt: 0, lastChunkAt: 0, endedAt: 0 }
const sent = { times, upstreamReply: { status: 200 } }
const relayed = (bytes: number): CallFields => ({ times, upstreamReply: { status: 200, bytes } })
const tokens = { ...noTokens, input: 5, output: 7 }
const usage = { tokens }
const held = { tokens: 100, input: 20, cost: 90 }

const twelve = { tokens: 12, cost: 0 }

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
      'chat_completions',
      { ...relayed(1_280), stream: true, usage: { tokens, partial: true } },
      30,
    ],
    ['what was relayed of a stream of messages, at 40 bytes a token', 'messages', { ...relayed(1_280), stream: true }, 52],
    [
      'what was relayed beside the input that a stream had told',
      'messages',
      { ...relayed(400), stream: true, usage: { tokens: { ...tokens, input: 60 }, partial: true } },
      70,
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
  for (const [what, endpoint, given, charged] of cases) t.equal(chargesOf(callOf(endpoint, given), held, null).tokens, charged, what)
  const onward: typeof cases = [
    ['all that was held where the work goes on', 'responses', sent, 100],
    ['all that was held where the caller left and the work goes on', 'responses', { times, abortedBy: 'client' }, 100],
    ['the real leaves where they were told', 'responses', { ...sent, usage }, 12],
    ['nothing for an error', 'responses', { times, upstreamReply: { status: 400 } }, 0],
  ]
  for (const [what, endpoint, given, charged] of onward) {
    t.equal(chargesOf(callOf(endpoint, { ...given, body: { goesOn: true } }), held, null).tokens, charged, what)
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
    [
      'what was relayed beside the input that it had told',
      { ...relayed(200), usage: { tokens: { ...tokens, input: 30 }, partial: true }, cost: unpriced },
      strict,
      80,
    ],
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
    t.equal(chargesOf(callOf('images', given), held, pricing).cost, charged, what)
  }
})

t.test('the ledger keeps what was sent and metered, and only fields that apply', async (t) => {
  t.notOk(isRecorded(callOf('chat_completions')), 'nothing of what never left')
  t.notOk(isRecorded(callOf('messages.count_tokens', sent)), 'nothing of what is not metered')
  t.match(recordOf(callOf('messages', sent), { tokens: 9, cost: 0 }, { late: ['key'] }), {
    key: null, group: null, model: 'm', outcome: 'ok', ...noTokens, charged: 9, late: ['key'],
  })
  t.match(
    recordOf(callOf('messages', { ...sent, usage: { tokens, responseModel: 'real' }, outcome: 'truncated' }), twelve, owesNothing),
    { model: 'm', outcome: 'truncated', ...tokens },
    'the name that tokens_total has'
  )
  const unasked = callOf('messages', { ...sent, model: null, usage: { responseModel: 'real' } })
  t.match(recordOf(unasked, twelve, owesNothing), { model: 'real' })
  t.equal(recordOf(callOf('messages', { ...sent, model: null }), twelve, owesNothing).model, null)
  t.equal(recordOf(callOf('messages', { ...sent, model: 'm'.repeat(1_000) }), twelve, owesNothing).model?.length, 128)
  t.match(recordOf(callOf('messages', { ...sent, routing: { sentModel: 'theirs' } }), twelve, owesNothing), {
    model: 'm', upstreamModel: 'theirs',
  })
})

t.test('the ledger keeps what a cost can be worked out from again', async (t) => {
  const tools = { usage: tokens, modalities: [] }
  const told = { speed: 'fast', region: 'eu', counts: { search: 2 }, tools, statedCost: '0.5' }
  const modalities = [{ direction: 'input' as const, modality: 'audio', tokens: 3 }]
  const full = callOf('messages', { ...sent, usage: { tokens, modalities, served: { tier: 'flex', ...told } } })
  t.match(recordOf(full, twelve, owesNothing), { bill: { ...told, modalities } })
  const nothing = { tier: null, speed: null, region: null, counts: {}, tools: null, statedCost: null }
  const { bill = {} } = recordOf(callOf('messages', { ...sent, usage: { tokens, served: nothing } }), twelve, owesNothing) ?? {}
  t.strictSame(Object.keys(bill), ['startedAt'], 'and nothing that was not told')
})

t.test('the ledger keeps the budgets of a party whose store was away', async (t) => {
  const bucket = { id: 'cost day UTC 2027-01-31', unit: 'cost', amount: 10, endsAt: 0, scope: 'group' } as const
  t.match(recordOf(callOf('messages', { ...sent, usage }), { tokens: 12, cost: 5 }, { late: ['group'], lateBuckets: [bucket] }), {
    late: ['group'], lateBuckets: [bucket], chargedCost: 5,
  })
})
